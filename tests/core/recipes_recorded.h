// Written by tests/oracle/recipes.py with PyTorch 2.15.0.
#pragma once
#include <array>
#include <cstdint>

namespace duplex::recorded {

// Base, minimum, warm-up and steps: 0.4, 0, 0, 8 and 0.4, 0.02, 3, 11.
constexpr std::array<float, 8> cosine = {0.4F, 0.384775907F, 0.341421356F,  0.276536686F,
                                         0.2F, 0.123463314F, 0.0585786438F, 0.0152240935F};
constexpr std::array<float, 11> warm_cosine = {0.133333333F, 0.266666667F,  0.4F,         0.4F,
                                               0.385537111F, 0.344350288F,  0.282709852F, 0.21F,
                                               0.137290148F, 0.0756497116F, 0.0344628888F};

// Three samples of five classes.
constexpr std::array<float, 15> logits = {0.5F,  -1.0F,  2.0F,  0.0F,  3.5F, 4.0F, 1.0F, -2.0F,
                                          0.25F, -0.75F, -3.0F, -3.0F, 1.5F, 0.5F, 0.0F};
constexpr std::array<std::int32_t, 3> labels = {4, 1, 2};
constexpr double smoothed_tenth_loss = 1.45418072;
constexpr std::array<float, 15> smoothed_tenth_gradient = {
    0.00596108474F,  -0.0038490349F,  0.0499269851F,   0.000992451794F, -0.0530314893F,
    0.300712943F,    -0.29136312F,    -0.00590474857F, 0.000562209927F, -0.004007312F,
    -0.00437126867F, -0.00437126867F, -0.100041568F,   0.0693464503F,   0.0394376181F};
constexpr double smoothed_all_loss = 3.04418087;
constexpr std::array<float, 15> smoothed_all_gradient = {
    -0.0540389195F, -0.0638490394F, -0.0100730117F, -0.0590075515F, 0.186968505F,
    0.240713F,      -0.0513631366F, -0.0659047514F, -0.0594377927F, -0.0640073121F,
    -0.0643712729F, -0.0643712729F, 0.139958441F,   0.00934645999F, -0.0205623768F};

// Two parameters of three and four elements, after two steps at a rate of 0.1.
constexpr std::array<float, 7> clip_weights = {1.0F, -1.0F, 0.5F, 0.25F, 2.0F, -0.5F, 0.0F};
constexpr std::array<float, 7> clip_gradients = {0.5F, -2.0F, 0.125F, 3.0F, -0.25F, 1.0F, -1.5F};
constexpr std::array<float, 7> value_sgd = {0.899999976F, -0.850000024F, 0.475000024F, 0.099999994F,
                                            2.05000019F,  -0.649999976F, 0.150000006F};
constexpr std::array<float, 7> norm_sgd = {0.96315968F, -0.852638721F, 0.49078989F, 0.0289580263F,
                                           2.01842022F, -0.573680639F, 0.110520981F};
constexpr std::array<float, 7> value_momentum = {0.840775013F,  -0.768400013F, 0.456574976F,
                                                 0.0292562488F, 2.04342508F,   -0.709887505F,
                                                 0.217124999F};
constexpr std::array<float, 7> norm_momentum = {0.932198644F,   -0.772219539F, 0.479430884F,
                                                -0.0735770017F, 1.99771321F,   -0.599415243F,
                                                0.15997912F};
constexpr std::array<float, 7> value_adam = {0.800024807F,  -0.800016761F, 0.30010277F,
                                             0.0500176996F, 2.19989729F,   -0.699981391F,
                                             0.199982002F};
constexpr std::array<float, 7> norm_adam = {0.80006212F, -0.800017118F, 0.300256461F, 0.0500119328F,
                                            1.81145048F, -0.699959099F, 0.199975252F};
constexpr std::array<float, 7> loose_norm_sgd = {0.899999976F,  -0.600000024F, 0.475000024F,
                                                 -0.350000024F, 2.05000019F,   -0.700000048F,
                                                 0.300000012F};

// Three weights after each of four updates, and their averages after each.
constexpr std::array<float, 12> updates = {1.0F, -2.0F, 0.5F,   2.0F,  -2.0F, 0.25F,
                                           0.0F, 4.0F,  0.125F, -1.0F, 0.0F,  3.0F};
constexpr std::array<float, 12> average_slow = {
    1.0F,        -2.0F,        0.5F,         1.10000002F,  -2.0F,        0.474999994F,
    0.99000001F, -1.39999998F, 0.439999998F, 0.791000009F, -1.25999999F, 0.69599998F};
constexpr std::array<float, 12> average_fast = {1.0F,      -2.0F,      0.5F,    1.75F,
                                                -2.0F,     0.3125F,    0.4375F, 2.5F,
                                                0.171875F, -0.640625F, 0.625F,  2.29296875F};

}  // namespace duplex::recorded
