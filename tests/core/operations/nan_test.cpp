// NaN passes through every operation whose ReLU or maximum could lose it (Device::keep_nan).
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "tests/core/operations/ops.h"
#include "tests/core/operations/values.h"

namespace duplex::test {
namespace {

struct NanCase {
  std::string name;
  Shape x;
  OpMaker make;
};

std::vector<NanCase> cases() {
  ConvSpec conv;
  conv.filters = 32;
  conv.window = {3, 3, 1, 1, {1, 1, 1, 1}};
  conv.relu = true;
  LinearSpec linear;
  linear.outputs = 37;
  linear.relu = true;
  BatchNormSpec norm;
  norm.relu = true;
  const PoolSpec pool{PoolKind::max, {3, 3, 2, 2, {0, 0, 1, 1}}};
  return {{"convolution", {2, 3, 8, 8}, conv_op(conv)},
          {"Winograd's convolution", {2, 32, 32, 32}, conv_op(conv)},
          {"linear layer", {4, 130}, linear_op(linear)},
          {"batch normalisation", {3, 17, 6, 6}, batch_norm_op(norm)},
          {"ReLU", {2, 17, 5, 5}, activation_op(ActivationKind::relu)},
          {"max pooling", {2, 32, 8, 8}, pool_op(pool)},
          {"max pooling of few channels", {2, 3, 8, 8}, pool_op(pool)}};
}

using NanTest = BackendTest;

/// A whole sample is NaN, because an element of the output depends on values within its sample, or
/// on all samples where it is normalised over them.
TEST_P(NanTest, PassesThrough) {
  for (const NanCase& c : cases()) {
    SCOPED_TRACE(c.name);
    std::vector<decltype(&on_plain)> places = {on_plain};
    if (c.x.rank() == 4) places.push_back(on_convolved);
    for (const auto& place : places) {
      Fixture fixture(*device, place(*device, {c.x}, c.make));
      std::vector<Values> inputs = random_inputs(fixture.op(), 1);
      const std::size_t sample = inputs[0].size() / static_cast<std::size_t>(c.x.n());
      for (std::size_t i = 0; i < sample; ++i)
        inputs[0][i] = std::numeric_limits<float>::quiet_NaN();
      Values y;
      {
        const KeepingNan keeping(*device);
        y = fixture.forward(inputs);
      }
      const std::size_t outputs = y.size() / static_cast<std::size_t>(c.x.n());
      for (std::size_t i = 0; i < outputs; ++i) ASSERT_TRUE(std::isnan(y[i])) << i;
      if (c.name == "batch normalisation") continue;
      for (std::size_t i = outputs; i < y.size(); ++i) ASSERT_FALSE(std::isnan(y[i])) << i;
    }
  }
}

/// With keep_nan on, numbers have the same bits as with it off.
TEST_P(NanTest, NumbersDoNotChange) {
  for (const NanCase& c : cases()) {
    SCOPED_TRACE(c.name);
    Fixture fixture(*device, on_plain(*device, {c.x}, c.make));
    const std::vector<Values> inputs = random_inputs(fixture.op(), 1);
    const Values expected = fixture.forward(inputs);
    const KeepingNan keeping(*device);
    EXPECT_EQ(fixture.forward(inputs), expected);
  }
}

/// One NaN among the numbers of a window is its maximum, wherever it lies in the window.
TEST_P(NanTest, OneInAWindowWins) {
  for (const std::int64_t channels : {1, 16}) {
    const Shape shape{1, channels, 3, 3};
    Fixture fixture(*device,
                    on_convolved(*device, {shape}, pool_op({PoolKind::max, {3, 3, 1, 1, {}}})));
    for (std::size_t at = 0; at < 9; ++at) {
      Values x = random_values(shape, 1);
      x[at] = std::numeric_limits<float>::quiet_NaN();
      const KeepingNan keeping(*device);
      const Values y = fixture.forward({x});
      EXPECT_TRUE(std::isnan(y[0])) << at << " of " << channels << " channels";
      for (std::size_t c = 1; c < y.size(); ++c) EXPECT_FALSE(std::isnan(y[c]));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Backends, NanTest, ::testing::ValuesIn(backends()), backend_label);

}  // namespace
}  // namespace duplex::test
