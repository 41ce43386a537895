// Tests pooling by hand, its gradients, and the backends against each other.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "core/error.h"
#include "tests/core/operations/gradient_check.h"
#include "tests/core/operations/ops.h"
#include "tests/core/operations/values.h"

namespace duplex::test {
namespace {

struct PoolCase {
  std::string name;
  Shape x;
  Window window;
};

std::vector<PoolCase> small_cases() {
  return {
      {"2x2/2", {2, 3, 4, 6}, {2, 2, 2, 2, {}}},
      {"3x3/2", {1, 2, 7, 7}, {3, 3, 2, 2, {}}},
      {"3x3/2, padded", {2, 2, 6, 5}, {3, 3, 2, 2, {1, 1, 1, 1}}},
      {"3x3/2, padded below and right", {1, 2, 6, 6}, {3, 3, 2, 2, {0, 0, 1, 1}}},
      {"3x3/1, padded", {1, 3, 4, 5}, {3, 3, 1, 1, {1, 1, 1, 1}}},
      {"2x3/3x1", {1, 2, 8, 5}, {2, 3, 3, 1, {0, 1, 1, 2}}},
      {"global", {2, 5, 3, 4}, {3, 4, 1, 1, {}}},
      {"1x1", {1, 2, 3, 3}, {1, 1, 1, 1, {}}},
      {"1x1/2", {1, 2, 5, 5}, {1, 1, 2, 2, {}}},
      {"17 channels", {1, 17, 4, 4}, {2, 2, 2, 2, {}}},
  };
}

std::vector<PoolCase> backend_cases() {
  std::vector<PoolCase> cases = {
      {"LeNet", {3, 20, 24, 24}, {2, 2, 2, 2, {}}},
      {"3/2 over 56", {1, 64, 56, 56}, {3, 3, 2, 2, {0, 0, 1, 1}}},
      {"3/2, padded", {2, 32, 29, 31}, {3, 3, 2, 2, {1, 1, 1, 1}}},
      {"inception", {1, 48, 14, 14}, {3, 3, 1, 1, {1, 1, 1, 1}}},
      {"global 7x7", {2, 100, 7, 7}, {7, 7, 1, 1, {}}},
      {"global 13x11", {1, 37, 13, 11}, {13, 11, 1, 1, {}}},
      {"5x5/3", {1, 512, 14, 14}, {5, 5, 3, 3, {}}},
      {"one channel", {4, 1, 9, 9}, {3, 3, 2, 2, {}}},
      {"four paddings", {2, 16, 10, 9}, {4, 5, 2, 3, {3, 1, 2, 4}}},
  };
  for (const PoolCase& c : small_cases()) cases.push_back(c);
  return cases;
}

PoolSpec pool_spec(PoolKind kind, const PoolCase& c) {
  return {kind, c.window};
}

using PoolTest = BackendTest;

//   1 5 2        windows of 2x2 at stride 1, one row of padding above
//   4 3 0
TEST_P(PoolTest, WorkedExample) {
  const Values x = {1, 5, 2, 4, 3, 0};
  const Window window = {2, 2, 1, 1, {1, 0, 0, 0}};
  Fixture max(*device, on_plain(*device, {{1, 1, 2, 3}}, pool_op({PoolKind::max, window})));
  EXPECT_EQ(max.forward({x}), (Values{5, 5, 5, 5}));
  EXPECT_EQ(max.backward({1, 2, 4, 8})[0], (Values{0, 15, 0, 0, 0, 0}));
  Fixture average(*device, on_plain(*device, {{1, 1, 2, 3}}, pool_op({PoolKind::average, window})));
  EXPECT_EQ(average.forward({x}), (Values{3, 3.5F, 3.25F, 2.5F}));
  EXPECT_EQ(average.backward({2, 4, 8, 16})[0], (Values{3, 9, 6, 2, 6, 4}));
}

// Padding is no candidate for the maximum: a map of negative values has a negative maximum, down to
// the lowest.
TEST_P(PoolTest, PaddingNeverWins) {
  const Window window = {3, 3, 2, 2, {1, 1, 1, 1}};
  Fixture fixture(*device, on_plain(*device, {{1, 2, 3, 3}}, pool_op({PoolKind::max, window})));
  const float lowest = std::numeric_limits<float>::lowest();
  Values x(18, -3.0F);
  std::fill(x.begin() + 9, x.end(), lowest);
  EXPECT_EQ(fixture.forward({x}), (Values{-3, -3, -3, -3, lowest, lowest, lowest, lowest}));
}

// Among equals the first in row-major order takes the gradient, in every layout.
TEST_P(PoolTest, FirstOfEqualsWins) {
  for (std::int64_t channels : {1, 3, 16, 33}) {
    for (const auto& place : {on_plain, on_convolved}) {
      SCOPED_TRACE(std::to_string(channels) + " channels");
      Fixture fixture(*device, place(*device, {{1, channels, 4, 4}},
                                     pool_op({PoolKind::max, {2, 2, 2, 2, {}}})));
      fixture.forward({Values(static_cast<std::size_t>(channels * 16), 1.5F)});
      const Values dx = fixture.backward(Values(static_cast<std::size_t>(channels * 4), 1.0F))[0];
      for (std::size_t i = 0; i < dx.size(); ++i) {
        EXPECT_EQ(dx[i], i % 16 == 0 || i % 16 == 2 || i % 16 == 8 || i % 16 == 10 ? 1.0F : 0.0F)
            << "element " << i;
      }
    }
  }
}

TEST_P(PoolTest, MaxGradients) {
  for (const PoolCase& c : small_cases()) {
    SCOPED_TRACE(c.name);
    for (const auto& place : {on_plain, on_convolved}) {
      Fixture fixture(*device, place(*device, {c.x}, pool_op(pool_spec(PoolKind::max, c))));
      EXPECT_TRUE(gradients_agree(fixture, {separated_values(c.x, 5, 0.1F)}, max_pool_tolerance));
    }
  }
}

TEST_P(PoolTest, AverageGradients) {
  for (const PoolCase& c : small_cases()) {
    SCOPED_TRACE(c.name);
    for (const auto& place : {on_plain, on_convolved}) {
      Fixture fixture(*device, place(*device, {c.x}, pool_op(pool_spec(PoolKind::average, c))));
      EXPECT_TRUE(gradients_agree(fixture, random_inputs(fixture.op(), 5), average_pool_tolerance));
    }
  }
}

TEST_P(PoolTest, RefusesWindowsOffTheMap) {
  for (PoolKind kind : {PoolKind::max, PoolKind::average}) {
    const TensorDesc x = plain_desc({1, 1, 4, 4});
    EXPECT_THROW(device->pool({kind, {2, 2, 1, 1, {2, 0, 0, 0}}}, x), Error);
    EXPECT_THROW(device->pool({kind, {5, 5, 1, 1, {}}}, x), Error);
  }
}

INSTANTIATE_TEST_SUITE_P(Backends, PoolTest, ::testing::ValuesIn(backends()), backend_label);

using PoolComparisonTest = ComparisonTest;

TEST_P(PoolComparisonTest, Max) {
  for (const PoolCase& c : backend_cases()) {
    SCOPED_TRACE(c.name);
    const OpMaker pool = pool_op(pool_spec(PoolKind::max, c));
    for (const auto& place : {on_plain, on_convolved}) {
      Fixture expected(*reference, place(*reference, {c.x}, pool));
      Fixture actual(*device, place(*device, {c.x}, pool));
      // Eighths have many ties.
      EXPECT_TRUE(
          same_results(actual, expected, exact_inputs(expected.op(), 1), max_pool_tolerance));
      EXPECT_TRUE(
          same_results(actual, expected, random_inputs(expected.op(), 1), max_pool_tolerance));
    }
  }
}

// The pooling follows a convolution of eighths, which is exact, so that the same elements are the
// maxima.
TEST_P(PoolComparisonTest, MaxAfterConvolution) {
  Tolerance tolerance = max_pool_tolerance;
  tolerance.backward = conv_tolerance.backward;
  for (const PoolCase& c : backend_cases()) {
    SCOPED_TRACE(c.name);
    const OpMaker pool = pool_op(pool_spec(PoolKind::max, c));
    Fixture expected(*reference, after_conv(*reference, {c.x}, pool));
    Fixture actual(*device, after_conv(*device, {c.x}, pool));
    EXPECT_TRUE(same_results(actual, expected, exact_inputs(expected.op(), 1), tolerance));
  }
}

TEST_P(PoolComparisonTest, Average) {
  for (const PoolCase& c : backend_cases()) {
    SCOPED_TRACE(c.name);
    const OpMaker pool = pool_op(pool_spec(PoolKind::average, c));
    for (const auto& place : {on_plain, on_convolved}) {
      Fixture expected(*reference, place(*reference, {c.x}, pool));
      Fixture actual(*device, place(*device, {c.x}, pool));
      EXPECT_TRUE(
          same_results(actual, expected, random_inputs(expected.op(), 1), average_pool_tolerance));
    }
    Fixture expected(*reference, after_conv(*reference, {c.x}, pool));
    Fixture actual(*device, after_conv(*device, {c.x}, pool));
    EXPECT_TRUE(same_results(actual, expected, random_inputs(expected.op(), 1), conv_tolerance));
  }
}

INSTANTIATE_TEST_SUITE_P(Backends, PoolComparisonTest, ::testing::ValuesIn(fast_backends()),
                         backend_label);

}  // namespace
}  // namespace duplex::test
