// Tests convolution against another way to write the sum, its gradients, and the backends against
// each other.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "core/error.h"
#include "tests/core/operations/gradient_check.h"
#include "tests/core/operations/ops.h"
#include "tests/core/operations/values.h"

namespace duplex::test {
namespace {

struct ConvCase {
  std::string name;
  Shape x;
  ConvSpec spec;
};

ConvSpec conv_spec(std::int64_t filters, const Window& window, std::int64_t groups = 1,
                   bool bias = true, bool relu = false) {
  ConvSpec spec;
  spec.filters = filters;
  spec.window = window;
  spec.groups = groups;
  spec.bias = bias;
  spec.relu = relu;
  return spec;
}

Window square(std::int64_t extent, std::int64_t stride, std::int64_t padding) {
  return {extent, extent, stride, stride, {padding, padding, padding, padding}};
}

/// Returns cases that are small enough for a derivative by every value.
std::vector<ConvCase> small_cases() {
  return {
      {"3x3", {2, 3, 5, 4}, conv_spec(4, square(3, 1, 1))},
      {"one pixel", {1, 1, 1, 1}, conv_spec(1, square(1, 1, 0))},
      {"no bias", {2, 2, 4, 5}, conv_spec(3, square(3, 1, 0), 1, false)},
      {"stride 2", {2, 2, 7, 6}, conv_spec(3, square(3, 2, 1))},
      {"two strides", {1, 2, 7, 7}, conv_spec(2, {3, 2, 2, 3, {1, 0, 1, 1}})},
      {"asymmetric padding", {2, 2, 6, 6}, conv_spec(2, {3, 3, 2, 2, {0, 0, 1, 1}})},
      {"four paddings", {1, 2, 4, 5}, conv_spec(2, {3, 3, 1, 1, {2, 0, 1, 3}})},
      {"groups", {2, 4, 4, 4}, conv_spec(6, square(3, 1, 1), 2)},
      {"depthwise", {2, 5, 4, 5}, conv_spec(5, square(3, 1, 1), 5)},
      {"1x1", {2, 5, 3, 4}, conv_spec(3, square(1, 1, 0))},
      {"1x1, stride 2", {2, 3, 5, 5}, conv_spec(4, square(1, 2, 0))},
      {"1x5", {1, 2, 3, 7}, conv_spec(2, {1, 5, 1, 1, {0, 2, 0, 2}})},
      {"window of the map's size", {2, 3, 4, 4}, conv_spec(5, square(4, 1, 0))},
      {"window larger than the map", {1, 2, 3, 3}, conv_spec(2, square(5, 1, 2))},
      {"17 channels to 1", {1, 17, 3, 3}, conv_spec(1, square(3, 1, 1))},
      {"3 channels to 17", {1, 3, 3, 3}, conv_spec(17, square(3, 1, 1))},
      {"17 channels to 16, 1x1", {1, 17, 3, 2}, conv_spec(16, square(1, 1, 0))},
      {"depthwise 17", {1, 17, 3, 3}, conv_spec(17, square(3, 1, 1), 17)},
  };
}

std::vector<ConvCase> relu_cases() {
  return {
      {"relu", {2, 3, 4, 5}, conv_spec(4, square(3, 1, 1), 1, true, true)},
      {"relu, no bias", {2, 2, 4, 4}, conv_spec(3, square(3, 2, 1), 1, false, true)},
      {"relu, groups", {1, 4, 4, 4}, conv_spec(4, square(3, 1, 1), 2, true, true)},
      {"relu, 1x1", {2, 4, 3, 3}, conv_spec(3, square(1, 1, 0), 1, true, true)},
  };
}

/// Returns shapes that networks have, and shapes that are awkward for vectors of 8 or 16 channels.
std::vector<ConvCase> backend_cases() {
  std::vector<ConvCase> cases = {
      {"LeNet 1", {5, 1, 28, 28}, conv_spec(20, square(5, 1, 0), 1, true, true)},
      {"LeNet 2", {3, 20, 12, 12}, conv_spec(50, square(5, 1, 0), 1, true, true)},
      {"VGG first", {1, 3, 33, 31}, conv_spec(64, square(3, 1, 1), 1, true, true)},
      {"VGG", {1, 64, 14, 15}, conv_spec(64, square(3, 1, 1), 1, true, true)},
      {"Resnet first", {1, 3, 65, 63}, conv_spec(64, square(7, 2, 3), 1, false)},
      {"Resnet, halving", {2, 64, 15, 13}, conv_spec(128, square(3, 2, 1), 1, false)},
      {"Resnet, shortcut", {2, 64, 14, 14}, conv_spec(128, square(1, 2, 0), 1, false)},
      {"GoogLeNet, reduction", {2, 192, 7, 9}, conv_spec(24, square(1, 1, 0), 1, true, true)},
      {"GoogLeNet, 5x5", {2, 24, 7, 7}, conv_spec(64, square(5, 1, 2), 1, true, true)},
      {"SqueezeNet, classes", {1, 512, 5, 5}, conv_spec(37, square(1, 1, 0), 1, true, true)},
      {"AlexNet first", {1, 3, 67, 67}, conv_spec(48, square(11, 4, 2), 1, true, true)},
      {"AlexNet, two groups", {2, 48, 9, 9}, conv_spec(64, square(5, 1, 2), 2, true, true)},
      {"same at stride 2", {2, 16, 12, 12}, conv_spec(32, {3, 3, 2, 2, {0, 0, 1, 1}})},
      {"four paddings", {1, 16, 9, 8}, conv_spec(16, {5, 5, 1, 1, {2, 1, 3, 4}})},
      {"odd channels", {3, 19, 11, 7}, conv_spec(33, square(3, 1, 1))},
      {"odd channels, stride 3", {1, 35, 11, 10}, conv_spec(17, square(3, 3, 1))},
      {"three groups of five", {2, 15, 6, 7}, conv_spec(21, square(3, 1, 1), 3)},
      {"four groups of 16", {2, 64, 6, 6}, conv_spec(64, square(3, 1, 1), 4, false)},
      {"depthwise 32", {2, 32, 9, 9}, conv_spec(32, square(3, 1, 1), 32, true, true)},
      {"depthwise 19", {1, 19, 7, 8}, conv_spec(19, square(3, 2, 1), 19)},
      {"depthwise, two filters a channel", {1, 16, 6, 6}, conv_spec(32, square(3, 1, 1), 16)},
      {"1x1 map", {4, 64, 1, 1}, conv_spec(10, square(1, 1, 0))},
      {"1x7", {1, 16, 5, 17}, conv_spec(16, {1, 7, 1, 1, {0, 3, 0, 3}})},
      {"one channel to one", {1, 1, 9, 9}, conv_spec(1, square(3, 1, 1))},
      {"whole map", {3, 32, 6, 6}, conv_spec(20, square(6, 1, 0))},
  };
  for (const ConvCase& c : small_cases()) cases.push_back(c);
  for (const ConvCase& c : relu_cases()) cases.push_back(c);
  return cases;
}

/// Computes (2.7) the other way round: it sends every input pixel to the outputs that read it, in
/// double.
Values scattered_convolution(const Shape& xs, const ConvSpec& spec, const Values& x,
                             const Values& weights, const Values& bias) {
  const Window& w = spec.window;
  const std::int64_t height = w.output_height(xs.h()), width = w.output_width(xs.w());
  const std::int64_t in_group = xs.c() / spec.groups, out_group = spec.filters / spec.groups;
  std::vector<double> y(static_cast<std::size_t>(xs.n() * spec.filters * height * width), 0.0);
  for (std::size_t i = 0; i < x.size(); ++i) {
    const auto index = static_cast<std::int64_t>(i);
    const std::int64_t ix = index % xs.w(), iy = index / xs.w() % xs.h();
    const std::int64_t c = index / (xs.w() * xs.h()) % xs.c(),
                       n = index / (xs.w() * xs.h() * xs.c());
    for (std::size_t j = 0; j < weights.size(); ++j) {
      const auto weight = static_cast<std::int64_t>(j);
      const std::int64_t kx = weight % w.width, ky = weight / w.width % w.height;
      const std::int64_t part = weight / (w.width * w.height);
      const std::int64_t f = part / in_group;
      if (f / out_group * in_group + part % in_group != c) continue;
      const std::int64_t down = iy + w.padding.top - ky, across = ix + w.padding.left - kx;
      if (down < 0 || across < 0 || down % w.stride_y != 0 || across % w.stride_x != 0) continue;
      const std::int64_t oy = down / w.stride_y, ox = across / w.stride_x;
      if (oy >= height || ox >= width) continue;
      y[static_cast<std::size_t>(((n * spec.filters + f) * height + oy) * width + ox)] +=
          double{x[i]} * double{weights[j]};
    }
  }
  Values result(y.size());
  for (std::size_t i = 0; i < y.size(); ++i) {
    const std::size_t f =
        i / static_cast<std::size_t>(height * width) % static_cast<std::size_t>(spec.filters);
    const double value = y[i] + (spec.bias ? double{bias[f]} : 0.0);
    result[i] = static_cast<float>(spec.relu && value < 0.0 ? 0.0 : value);
  }
  return result;
}

using ConvTest = BackendTest;

// A 2x2 window goes over a 3x3 map; the results are computed by hand.
TEST_P(ConvTest, WorkedExample) {
  Fixture fixture(*device,
                  on_plain(*device, {{1, 1, 3, 3}}, conv_op(conv_spec(1, square(2, 1, 0)))));
  const Values y = fixture.forward({{1, 2, 3, 4, 5, 6, 7, 8, 9}, {1, 0, 2, -1}, {0.5F}});
  EXPECT_EQ(y, (Values{1 + 8 - 5 + 0.5F, 2 + 10 - 6 + 0.5F, 4 + 14 - 8 + 0.5F, 5 + 16 - 9 + 0.5F}));
  const std::vector<Values> gradients = fixture.backward({1, 0, 0, 2});
  EXPECT_EQ(gradients[0], (Values{1, 0, 0, 2, -1 + 2, 0, 0, 4, -2}));
  EXPECT_EQ(gradients[1], (Values{1 + 2 * 5, 2 + 2 * 6, 4 + 2 * 8, 5 + 2 * 9}));
  EXPECT_EQ(gradients[2], (Values{3}));
}

TEST_P(ConvTest, AgreesWithScatteredSum) {
  std::vector<ConvCase> cases = small_cases();
  for (const ConvCase& c : relu_cases()) cases.push_back(c);
  for (const ConvCase& c : cases) {
    SCOPED_TRACE(c.name);
    Fixture fixture(*device, on_plain(*device, {c.x}, conv_op(c.spec)));
    const std::vector<Values> inputs = random_inputs(fixture.op(), 3);
    const Values expected = scattered_convolution(c.x, c.spec, inputs[0], inputs[1],
                                                  c.spec.bias ? inputs[2] : Values{});
    EXPECT_LE(relative_error(fixture.forward(inputs), expected), conv_tolerance.forward);
  }
}

TEST_P(ConvTest, Gradients) {
  for (const ConvCase& c : small_cases()) {
    SCOPED_TRACE(c.name);
    for (const auto& place : {on_plain, on_convolved}) {
      Fixture fixture(*device, place(*device, {c.x}, conv_op(c.spec)));
      EXPECT_TRUE(gradients_agree(fixture, random_inputs(fixture.op(), 5), conv_tolerance));
    }
  }
}

TEST_P(ConvTest, GradientsWithRelu) {
  for (const ConvCase& c : relu_cases()) {
    SCOPED_TRACE(c.name);
    ConvSpec linear = c.spec;
    linear.relu = false;
    for (const auto& place : {on_plain, on_convolved}) {
      Fixture fixture(*device, place(*device, {c.x}, conv_op(c.spec)));
      Fixture before_relu(*device, place(*device, {c.x}, conv_op(linear)));
      EXPECT_TRUE(gradients_agree(fixture, random_inputs(fixture.op(), 5), conv_relu_tolerance,
                                  &before_relu));
    }
  }
}

TEST_P(ConvTest, RefusesWhatDoesNotFit) {
  const TensorDesc x = plain_desc({1, 4, 5, 5});
  EXPECT_THROW(device->conv(conv_spec(4, square(3, 1, 0), 3), x), Error);  // 3 does not divide 4
  EXPECT_THROW(device->conv(conv_spec(5, square(3, 1, 0), 2), x), Error);  // 2 does not divide 5
  EXPECT_THROW(device->conv(conv_spec(4, square(7, 1, 0)), x), Error);
}

INSTANTIATE_TEST_SUITE_P(Backends, ConvTest, ::testing::ValuesIn(backends()), backend_label);

using ConvComparisonTest = ComparisonTest;

TEST_P(ConvComparisonTest, OnPlain) {
  for (const ConvCase& c : backend_cases()) {
    SCOPED_TRACE(c.name);
    Fixture expected(*reference, on_plain(*reference, {c.x}, conv_op(c.spec)));
    Fixture actual(*device, on_plain(*device, {c.x}, conv_op(c.spec)));
    EXPECT_TRUE(same_results(actual, expected, random_inputs(expected.op(), 1), conv_tolerance));
  }
}

TEST_P(ConvComparisonTest, AfterConvolution) {
  for (const ConvCase& c : backend_cases()) {
    SCOPED_TRACE(c.name);
    Fixture expected(*reference, after_conv(*reference, {c.x}, conv_op(c.spec)));
    Fixture actual(*device, after_conv(*device, {c.x}, conv_op(c.spec)));
    EXPECT_TRUE(same_results(actual, expected, random_inputs(expected.op(), 1), conv_tolerance));
  }
}

INSTANTIATE_TEST_SUITE_P(Backends, ConvComparisonTest, ::testing::ValuesIn(rounding_backends()),
                         backend_label);

}  // namespace
}  // namespace duplex::test
