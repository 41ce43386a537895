// Tests LRN against (2.8) written down directly, its gradients, and the backends against each
// other.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "core/error.h"
#include "tests/core/operations/gradient_check.h"
#include "tests/core/operations/ops.h"
#include "tests/core/operations/values.h"

namespace duplex::test {
namespace {

/// Computes (2.8), element by element, in double.
Values normalised(const Shape& shape, const LrnSpec& spec, const Values& x) {
  const std::int64_t map = shape.h() * shape.w(), channels = shape.c();
  Values y(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    const std::int64_t c = static_cast<std::int64_t>(i) / map % channels;
    double squares = 0.0;
    for (std::int64_t j = 0; j < channels; ++j) {
      if (std::abs(j - c) > spec.size / 2) continue;
      const double value = double{x[i + static_cast<std::size_t>((j - c + channels) * map) -
                                    static_cast<std::size_t>(channels * map)]};
      squares += value * value;
    }
    const double alpha = double{spec.alpha}, size = static_cast<double>(spec.size);
    y[i] = static_cast<float>(double{x[i]} /
                              std::pow(double{spec.k} + alpha / size * squares, double{spec.beta}));
  }
  return y;
}

const LrnSpec googlenet = {5, 1e-4F, 0.75F, 1.0F};
const LrnSpec alexnet = {5, 1e-4F, 0.75F, 2.0F};
/// With these parameters, the neighbours matter much.
const LrnSpec strong = {5, 2.0F, 0.75F, 1.0F};
const LrnSpec three = {3, 1.0F, 0.5F, 2.0F};
const LrnSpec one = {1, 1.0F, 1.0F, 1.0F};

const std::vector<Shape> small = {{2, 7, 2, 3}, {1, 1, 2, 2}, {1, 3, 2, 2}, {1, 17, 1, 3}};

using LrnTest = BackendTest;

// With size 3, alpha 3, k 1 and beta 1, y = x / (1 + the sum of the neighbours' squares).
TEST_P(LrnTest, WorkedExample) {
  Fixture fixture(*device, on_plain(*device, {{1, 4, 1, 1}}, lrn_op({3, 3.0F, 1.0F, 1.0F})));
  const Values y = fixture.forward({{1, 2, -3, 4}});
  const Values expected = {1.0F / 6, 2.0F / 15, -3.0F / 30, 4.0F / 26};
  EXPECT_LE(relative_error(y, expected), lrn_tolerance.forward);
}

TEST_P(LrnTest, AgreesWithTheEquation) {
  for (const LrnSpec& spec : {googlenet, alexnet, strong, three, one}) {
    for (const Shape& shape : small) {
      SCOPED_TRACE(shape.str() + " size " + std::to_string(spec.size));
      for (const auto& place : {on_plain, on_convolved}) {
        Fixture fixture(*device, place(*device, {shape}, lrn_op(spec)));
        const std::vector<Values> inputs = {random_values(shape, 3, -4.0F, 4.0F)};
        EXPECT_LE(relative_error(fixture.forward(inputs), normalised(shape, spec, inputs[0])),
                  lrn_tolerance.forward);
      }
    }
  }
}

TEST_P(LrnTest, Gradients) {
  for (const LrnSpec& spec : {googlenet, strong, three, one}) {
    for (const Shape& shape : small) {
      SCOPED_TRACE(shape.str() + " size " + std::to_string(spec.size));
      for (const auto& place : {on_plain, on_convolved}) {
        Fixture fixture(*device, place(*device, {shape}, lrn_op(spec)));
        EXPECT_TRUE(gradients_agree(fixture, random_inputs(fixture.op(), 5), lrn_tolerance));
      }
    }
  }
}

TEST_P(LrnTest, RefusesAnEvenSize) {
  for (const std::int64_t size : {0, 4}) {
    LrnSpec spec = googlenet;
    spec.size = size;
    EXPECT_THROW(Fixture(*device, on_plain(*device, {{1, 8, 3, 3}}, lrn_op(spec))), Error) << size;
  }
}

INSTANTIATE_TEST_SUITE_P(Backends, LrnTest, ::testing::ValuesIn(backends()), backend_label);

using LrnComparisonTest = ComparisonTest;

TEST_P(LrnComparisonTest, Everywhere) {
  std::vector<Shape> shapes = {{2, 64, 14, 14}, {1, 192, 9, 7}, {3, 20, 5, 5},
                               {1, 96, 13, 13}, {2, 33, 6, 5},  {1, 16, 1, 1}};
  shapes.insert(shapes.end(), small.begin(), small.end());
  for (const LrnSpec& spec : {googlenet, alexnet, strong, three}) {
    for (const Shape& shape : shapes) {
      SCOPED_TRACE(shape.str() + " size " + std::to_string(spec.size));
      for (const auto& place : {on_plain, on_convolved}) {
        Fixture expected(*reference, place(*reference, {shape}, lrn_op(spec)));
        Fixture actual(*device, place(*device, {shape}, lrn_op(spec)));
        EXPECT_TRUE(
            same_results(actual, expected, {random_values(shape, 1, -4.0F, 4.0F)}, lrn_tolerance));
      }
      Fixture expected(*reference, after_conv(*reference, {shape}, lrn_op(spec)));
      Fixture actual(*device, after_conv(*device, {shape}, lrn_op(spec)));
      EXPECT_TRUE(same_results(actual, expected, random_inputs(expected.op(), 1), lrn_tolerance));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Backends, LrnComparisonTest, ::testing::ValuesIn(rounding_backends()),
                         backend_label);

}  // namespace
}  // namespace duplex::test
