// Tests addition, and the sum of gradients.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "core/error.h"
#include "tests/core/operations/gradient_check.h"
#include "tests/core/operations/ops.h"
#include "tests/core/operations/values.h"

namespace duplex::test {
namespace {

const std::vector<Shape> shapes = {{2, 3, 4, 5}, {1, 64, 7, 7}, {2, 17, 3, 3}, {1, 1, 1, 1}};

using AddTest = BackendTest;

TEST_P(AddTest, Adds) {
  for (const Shape& shape : shapes) {
    for (bool relu : {false, true}) {
      SCOPED_TRACE(shape.str() + (relu ? " relu" : ""));
      const Values a = exact_values(shape, 1), b = exact_values(shape, 2);
      Values y(a.size());
      for (std::size_t i = 0; i < y.size(); ++i) {
        y[i] = relu ? std::max(a[i] + b[i], 0.0F) : a[i] + b[i];
      }
      const TensorDesc plain = plain_desc(shape), convolved = convolved_desc(*device, shape);
      for (const std::vector<TensorDesc>& descs : std::vector<std::vector<TensorDesc>>{
               {plain, plain}, {convolved, convolved}, {plain, convolved}, {convolved, plain}}) {
        Fixture fixture(*device, add_op(relu)(*device, descs));
        EXPECT_EQ(fixture.forward({a, b}), y);
      }
    }
  }
}

TEST_P(AddTest, Gradients) {
  const Shape shape = {2, 17, 2, 2};
  for (const auto& place : {on_plain, on_convolved}) {
    Fixture fixture(*device, place(*device, {shape, shape}, add_op(false)));
    EXPECT_TRUE(gradients_agree(fixture, random_inputs(fixture.op(), 5), add_tolerance));
    Fixture relu(*device, place(*device, {shape, shape}, add_op(true)));
    EXPECT_TRUE(gradients_agree(relu, random_inputs(relu.op(), 5), add_relu_tolerance, &fixture));
  }
}

TEST_P(AddTest, RefusesOtherShapes) {
  EXPECT_THROW(device->add(false, plain_desc({1, 2, 3, 3}), plain_desc({1, 3, 3, 3})), Error);
}

using GradientSumTest = BackendTest;

TEST_P(GradientSumTest, SumsAndMasks) {
  LinearSpec linear;
  linear.outputs = 37;
  std::vector<TensorDesc> descs = {device->linear(linear, plain_desc({3, 50}))->y,
                                   plain_desc({3, 37})};
  for (const Shape& shape : shapes) {
    descs.push_back(plain_desc(shape));
    descs.push_back(convolved_desc(*device, shape));
  }
  for (const TensorDesc& desc : descs) {
    const Shape& shape = desc.shape;
    const auto sum = device->gradient_sum(desc);
    Memory memory(*device);
    const Values y_values = exact_values(shape, 9);  // These values have zeros.
    const Tensor y = memory.holding(desc, y_values);
    for (std::size_t count : {1, 2, 3, 5, 8, 9, 18}) {
      for (const Tensor* mask : {static_cast<const Tensor*>(nullptr), &y}) {
        SCOPED_TRACE(shape.str() + ", " + std::to_string(count) + " inputs" +
                     (mask != nullptr ? ", masked" : ""));
        std::vector<Tensor> inputs;
        Values expected(y_values.size(), 0.0F);
        for (std::size_t i = 0; i < count; ++i) {
          const Values values = exact_values(shape, i);
          inputs.push_back(memory.holding(desc, values));
          for (std::size_t j = 0; j < expected.size(); ++j) expected[j] += values[j];
        }
        for (std::size_t j = 0; j < expected.size(); ++j) {
          if (mask != nullptr && !(y_values[j] > 0.0F)) expected[j] = 0.0F;
        }
        Tensor out = memory.poisoned(desc);
        sum->run(out, inputs, mask);
        EXPECT_EQ(memory.read(out), expected);
        // The sum goes into each of the inputs in turn.
        for (std::size_t i = 0; i < count; ++i) {
          std::vector<Tensor> again = inputs;
          again[i] = memory.holding(desc, memory.read(inputs[i]));
          Tensor in_place = again[i];
          sum->run(in_place, again, mask);
          EXPECT_EQ(memory.read(in_place), expected) << "into input " << i;
        }
      }
    }
  }
}

using ManyGradientsTest = BackendTest;

/// They are added in float32 one after the other, and the sum is rounded once to what the backend
/// stores, however many layers have read an output.
TEST_P(ManyGradientsTest, AreAddedInTheirOrder) {
  const Shape shape{2, 17, 3, 3};
  for (const TensorDesc& desc : {plain_desc(shape), convolved_desc(*device, shape)}) {
    const auto sum = device->gradient_sum(desc);
    for (const std::size_t count : {8, 9, 17, 40, 200}) {
      SCOPED_TRACE(std::to_string(count) + " inputs");
      Memory memory(*device);
      std::vector<Tensor> inputs;
      Values expected(static_cast<std::size_t>(shape.elements()), 0.0F);
      for (std::size_t i = 0; i < count; ++i) {
        inputs.push_back(memory.holding(desc, random_values(shape, i)));
        const Values stored = memory.read(inputs.back());
        for (std::size_t j = 0; j < expected.size(); ++j) expected[j] += stored[j];
      }
      // One of the last inputs is overwritten.
      sum->run(inputs[count - 2], inputs, nullptr);
      EXPECT_EQ(memory.read(inputs[count - 2]), memory.read(memory.holding(desc, expected)));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Backends, ManyGradientsTest, ::testing::ValuesIn(rounding_backends()),
                         backend_label);
INSTANTIATE_TEST_SUITE_P(Backends, AddTest, ::testing::ValuesIn(backends()), backend_label);
INSTANTIATE_TEST_SUITE_P(Backends, GradientSumTest, ::testing::ValuesIn(backends()), backend_label);

using AddComparisonTest = ComparisonTest;

// This is a residual block's end: two convolutions, their sum, ReLU, and the gradient into both.
TEST_P(AddComparisonTest, AfterConvolutions) {
  for (const Shape& shape : shapes) {
    for (bool relu : {false, true}) {
      SCOPED_TRACE(shape.str() + (relu ? " relu" : ""));
      Fixture expected(*reference, after_conv(*reference, {shape, shape}, add_op(relu)));
      Fixture actual(*device, after_conv(*device, {shape, shape}, add_op(relu)));
      EXPECT_TRUE(same_results(actual, expected, exact_inputs(expected.op(), 1), conv_tolerance));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Backends, AddComparisonTest, ::testing::ValuesIn(rounding_backends()),
                         backend_label);

}  // namespace
}  // namespace duplex::test
