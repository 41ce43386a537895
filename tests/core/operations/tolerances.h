// Says how exact each operation has to be. All tolerances of tests/core are here.
#pragma once

namespace duplex::test {

struct Tolerance {
  /// The gradient check moves a value by this step.
  double step;
  /// The derivative may differ from the gradient by this share of (the derivative + the RMS of all
  /// derivatives by that tensor).
  double derivative;
  /// A backend's output and gradients may differ from the reference's by this: |difference| /
  /// |reference|, both as Euclidean norms.
  double forward, backward;
};

// Linear operations take a long step: central differences are exact there but for rounding. Those
// with a ReLU or a maximum take a short one.
// clang-format off
//                                           step  derivative  forward  backward
constexpr Tolerance conv_tolerance          = {0.25, 1e-4,       2e-6,    5e-6};
constexpr Tolerance conv_relu_tolerance     = {0.01, 5e-4,       2e-6,    5e-6};
constexpr Tolerance linear_tolerance        = {0.25, 1e-4,       2e-6,    5e-6};
constexpr Tolerance linear_relu_tolerance   = {0.01, 5e-4,       2e-6,    5e-6};
constexpr Tolerance max_pool_tolerance      = {0.01, 1e-4,       0.0,     1e-6};
constexpr Tolerance average_pool_tolerance  = {0.25, 1e-4,       1e-6,    1e-6};
constexpr Tolerance lrn_tolerance           = {0.02, 5e-4,       1e-6,    5e-6};
constexpr Tolerance batch_norm_tolerance    = {0.02, 5e-4,       2e-6,    1e-5};
constexpr Tolerance relu_tolerance          = {0.01, 1e-4,       0.0,     0.0};
constexpr Tolerance sigmoid_tolerance       = {0.02, 1e-4,       2e-6,    5e-6};
constexpr Tolerance dropout_tolerance       = {0.25, 1e-4,       0.0,     0.0};
constexpr Tolerance concat_tolerance        = {0.25, 1e-4,       0.0,     0.0};
constexpr Tolerance add_tolerance           = {0.25, 1e-4,       0.0,     0.0};
constexpr Tolerance add_relu_tolerance      = {0.01, 1e-4,       0.0,     0.0};
constexpr Tolerance pad_channels_tolerance  = {0.25, 1e-4,       0.0,     0.0};
constexpr Tolerance loss_tolerance          = {0.02, 5e-4,       2e-6,    5e-6};
// clang-format on

/// This holds for any operation on activations that are stored in bfloat16: x, dy and the results
/// are each rounded by up to 2^-9 of themselves.
constexpr double bf16_tolerance = 0.012;

/// This holds for the forward of batch normalisation on values around 1000 with a deviation of
/// 0.58: a mean rounded to float32 is off by up to 3e-5, and by ten times that where oneDNN adds in
/// float32 (Intel's packages do). A variance that is the difference of two large sums would be off
/// by a tenth.
constexpr double large_mean_tolerance = 1e-3;

}  // namespace duplex::test
