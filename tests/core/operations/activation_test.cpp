// Tests ReLU and sigmoid.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "tests/core/operations/gradient_check.h"
#include "tests/core/operations/ops.h"
#include "tests/core/operations/values.h"

namespace duplex::test {
namespace {

const std::vector<Shape> shapes = {{2, 3, 4, 5}, {1, 17, 2, 3}, {1, 1, 1, 1}};
const auto relu = activation_op(ActivationKind::relu);
const auto sigmoid = activation_op(ActivationKind::sigmoid);

using ActivationTest = BackendTest;

// The derivative at 0 is 0 (3.6), at -0 too.
TEST_P(ActivationTest, Relu) {
  Fixture fixture(*device, on_plain(*device, {{1, 6}}, relu));
  EXPECT_EQ(fixture.forward({{-2, -0.0F, 0, 1e-30F, 3, 1e30F}}),
            (Values{0, 0, 0, 1e-30F, 3, 1e30F}));
  EXPECT_EQ(fixture.backward({1, 2, 3, 4, 5, 6})[0], (Values{0, 0, 0, 4, 5, 6}));
}

TEST_P(ActivationTest, Sigmoid) {
  const Values x = {-200, -20, -1, 0, 0.5F, 3, 20, 200};
  Values expected;
  for (float value : x)
    expected.push_back(static_cast<float>(1.0 / (1.0 + std::exp(-double{value}))));
  Fixture fixture(*device, on_plain(*device, {{2, 4}}, sigmoid));
  const Values y = fixture.forward({x});
  for (std::size_t i = 0; i < y.size(); ++i) {
    EXPECT_NEAR(y[i], expected[i], 2e-7F) << "sigmoid(" << x[i] << ")";
  }
  EXPECT_EQ(y[3], 0.5F);
}

TEST_P(ActivationTest, Gradients) {
  for (const Shape& shape : shapes) {
    SCOPED_TRACE(shape.str());
    for (const auto& place : {on_plain, on_convolved}) {
      Fixture relu_fixture(*device, place(*device, {shape}, relu));
      EXPECT_TRUE(
          gradients_agree(relu_fixture, {separated_values(shape, 5, 0.1F)}, relu_tolerance));
      Fixture sigmoid_fixture(*device, place(*device, {shape}, sigmoid));
      EXPECT_TRUE(gradients_agree(sigmoid_fixture, {random_values(shape, 5, -3.0F, 3.0F)},
                                  sigmoid_tolerance));
    }
  }
}

TEST_P(ActivationTest, GradientInPlace) {
  for (ActivationKind kind : {ActivationKind::relu, ActivationKind::sigmoid}) {
    const TensorDesc desc = convolved_desc(*device, {2, 19, 3, 3});
    const auto activation = device->activation(kind, desc);
    Memory memory(*device);
    const Tensor x = memory.holding(desc, random_values(desc.shape, 1));
    Tensor y = memory.poisoned(activation->y), dx = memory.poisoned(activation->x);
    activation->forward(y, x);
    Tensor dy = memory.holding(activation->y, random_values(desc.shape, 2));
    activation->backward(dx, dy, y);
    activation->backward(dy, dy, y);
    EXPECT_EQ(memory.read(dy), memory.read(dx));
  }
}

INSTANTIATE_TEST_SUITE_P(Backends, ActivationTest, ::testing::ValuesIn(backends()), backend_label);

using ActivationComparisonTest = ComparisonTest;

TEST_P(ActivationComparisonTest, Everywhere) {
  std::vector<Shape> all = {{2, 64, 7, 7}, {1, 33, 9, 9}, {3, 100, 1, 1}};
  all.insert(all.end(), shapes.begin(), shapes.end());
  for (const Shape& shape : all) {
    SCOPED_TRACE(shape.str());
    for (const auto& place : {on_plain, on_convolved}) {
      Fixture expected_relu(*reference, place(*reference, {shape}, relu));
      Fixture actual_relu(*device, place(*device, {shape}, relu));
      EXPECT_TRUE(same_results(actual_relu, expected_relu, exact_inputs(expected_relu.op(), 1),
                               relu_tolerance));
      Fixture expected(*reference, place(*reference, {shape}, sigmoid));
      Fixture actual(*device, place(*device, {shape}, sigmoid));
      EXPECT_TRUE(same_results(actual, expected, {random_values(shape, 1, -8.0F, 8.0F)},
                               sigmoid_tolerance));
    }
    for (const OpMaker& make : {relu, sigmoid}) {
      Fixture expected(*reference, after_conv(*reference, {shape}, make));
      Fixture actual(*device, after_conv(*device, {shape}, make));
      EXPECT_TRUE(same_results(actual, expected, exact_inputs(expected.op(), 1), conv_tolerance));
    }
  }
  for (const OpMaker& make : {relu, sigmoid}) {
    Fixture expected(*reference, on_plain(*reference, {{7, 129}}, make));
    Fixture actual(*device, on_plain(*device, {{7, 129}}, make));
    EXPECT_TRUE(same_results(actual, expected, exact_inputs(expected.op(), 1), sigmoid_tolerance));
  }
}

INSTANTIATE_TEST_SUITE_P(Backends, ActivationComparisonTest, ::testing::ValuesIn(fast_backends()),
                         backend_label);

}  // namespace
}  // namespace duplex::test
