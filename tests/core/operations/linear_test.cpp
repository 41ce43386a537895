// Tests the linear layer by hand, its gradients, and the backends against each other.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/core/operations/gradient_check.h"
#include "tests/core/operations/ops.h"

namespace duplex::test {
namespace {

struct LinearCase {
  Shape x;
  std::int64_t outputs;
  bool bias = true;

  LinearSpec spec(bool relu) const {
    LinearSpec spec;
    spec.outputs = outputs;
    spec.bias = bias;
    spec.relu = relu;
    return spec;
  }
};

using LinearTest = BackendTest;

TEST_P(LinearTest, WorkedExample) {
  LinearSpec spec;
  spec.outputs = 2;
  Fixture fixture(*device, on_plain(*device, {{2, 3}}, linear_op(spec)));
  const Values y = fixture.forward({{1, 2, 3, -1, 0, 4}, {1, -1, 2, 0, 3, 1}, {10, 20}});
  EXPECT_EQ(y, (Values{1 - 2 + 6 + 10, 6 + 3 + 20, -1 + 8 + 10, 4 + 20}));
  const std::vector<Values> gradients = fixture.backward({1, 2, 3, -1});
  EXPECT_EQ(gradients[0], (Values{1, -1 + 6, 2 + 2, 3, -3 - 3, 6 - 1}));
  EXPECT_EQ(gradients[1], (Values{1 - 3, 2, 3 + 12, 2 + 1, 4, 6 - 4}));
  EXPECT_EQ(gradients[2], (Values{4, 1}));
}

// A map is read in logical order, whatever its layout: with an identity of weights, output i is
// element i.
TEST_P(LinearTest, ReadsMapsInLogicalOrder) {
  const Shape shape = {1, 19, 3, 2};
  const std::int64_t elements = shape.elements();
  LinearSpec spec;
  spec.outputs = elements;
  spec.bias = false;
  Fixture fixture(*device, on_convolved(*device, {shape}, linear_op(spec)));
  Values x(static_cast<std::size_t>(elements)), identity(x.size() * x.size(), 0.0F);
  for (std::size_t i = 0; i < x.size(); ++i) {
    x[i] = static_cast<float>(i + 1);
    identity[i * x.size() + i] = 1.0F;
  }
  EXPECT_EQ(fixture.forward({x, identity}), x);
  EXPECT_EQ(fixture.backward(x)[0], x);
}

TEST_P(LinearTest, Gradients) {
  for (const LinearCase& c : {LinearCase{{3, 7}, 5}, LinearCase{{1, 1}, 1},
                              LinearCase{{2, 6}, 4, false}, LinearCase{{3, 17}, 16}}) {
    SCOPED_TRACE(c.x.str());
    Fixture fixture(*device, on_plain(*device, {c.x}, linear_op(c.spec(false))));
    EXPECT_TRUE(gradients_agree(fixture, random_inputs(fixture.op(), 5), linear_tolerance));
  }
  for (const LinearCase& c : {LinearCase{{2, 3, 3, 2}, 4}, LinearCase{{2, 17, 2, 1}, 3}}) {
    SCOPED_TRACE(c.x.str());
    for (const auto& place : {on_plain, on_convolved}) {
      Fixture fixture(*device, place(*device, {c.x}, linear_op(c.spec(false))));
      EXPECT_TRUE(gradients_agree(fixture, random_inputs(fixture.op(), 5), linear_tolerance));
    }
  }
}

TEST_P(LinearTest, GradientsWithRelu) {
  for (const LinearCase& c : {LinearCase{{3, 7}, 8}, LinearCase{{2, 6}, 8, false}}) {
    SCOPED_TRACE(c.x.str());
    Fixture fixture(*device, on_plain(*device, {c.x}, linear_op(c.spec(true))));
    Fixture before_relu(*device, on_plain(*device, {c.x}, linear_op(c.spec(false))));
    EXPECT_TRUE(gradients_agree(fixture, random_inputs(fixture.op(), 5), linear_relu_tolerance,
                                &before_relu));
  }
}

INSTANTIATE_TEST_SUITE_P(Backends, LinearTest, ::testing::ValuesIn(backends()), backend_label);

using LinearComparisonTest = ComparisonTest;

TEST_P(LinearComparisonTest, OnPlain) {
  for (const LinearCase& c :
       {LinearCase{{1, 1}, 1}, LinearCase{{64, 500}, 10}, LinearCase{{7, 33}, 65},
        LinearCase{{1, 1024}, 257}, LinearCase{{5, 128}, 128, false}, LinearCase{{16, 2049}, 3},
        LinearCase{{3, 20, 5, 5}, 31}, LinearCase{{2, 64, 1, 1}, 100}}) {
    for (bool relu : {false, true}) {
      SCOPED_TRACE(c.x.str() + (relu ? " relu" : ""));
      Fixture expected(*reference, on_plain(*reference, {c.x}, linear_op(c.spec(relu))));
      Fixture actual(*device, on_plain(*device, {c.x}, linear_op(c.spec(relu))));
      EXPECT_TRUE(
          same_results(actual, expected, random_inputs(expected.op(), 1), linear_tolerance));
    }
  }
}

TEST_P(LinearComparisonTest, AfterConvolution) {
  for (const LinearCase& c :
       {LinearCase{{3, 20, 5, 5}, 31}, LinearCase{{1, 64, 7, 7}, 48}, LinearCase{{2, 33, 1, 1}, 10},
        LinearCase{{4, 16, 3, 4}, 16, false}, LinearCase{{2, 128, 1, 1}, 100}}) {
    for (bool relu : {false, true}) {
      SCOPED_TRACE(c.x.str() + (relu ? " relu" : ""));
      Fixture expected(*reference, after_conv(*reference, {c.x}, linear_op(c.spec(relu))));
      Fixture actual(*device, after_conv(*device, {c.x}, linear_op(c.spec(relu))));
      EXPECT_TRUE(
          same_results(actual, expected, random_inputs(expected.op(), 1), linear_tolerance));
    }
  }
}

// Two linear layers in a row: the first one's output is the second one's input.
TEST_P(LinearComparisonTest, AfterLinear) {
  const auto two_layers = [](Device& target) {
    LinearSpec first, second;
    first.outputs = 67;
    second.outputs = 10;
    const std::shared_ptr<Linear> a = target.linear(first, plain_desc({9, 130}));
    const std::shared_ptr<Linear> b = target.linear(second, a->y);
    const auto memory = std::make_shared<Memory>(target);
    const Tensor between = memory->poisoned(a->y), gradient = memory->poisoned(a->y);
    OpUnderTest op;
    op.inputs = {{"x", a->x},
                 {"first weights", a->weights},
                 {"first bias", a->bias},
                 {"second weights", b->weights},
                 {"second bias", b->bias}};
    op.y = b->y;
    op.forward = [=](Tensor& y, const std::vector<Tensor>& in) {
      (void)memory;
      Tensor hidden = between;
      a->forward(hidden, in[0], in[1], in[2]);
      b->forward(y, hidden, in[3], in[4]);
    };
    op.backward = [=](std::vector<Tensor>& gradients, const Tensor& dy,
                      const std::vector<Tensor>& in, const Tensor&) {
      Tensor dhidden = gradient;
      b->backward_weights(gradients[3], gradients[4], dy, between);
      b->backward_data(dhidden, dy, in[3]);
      a->backward_weights(gradients[1], gradients[2], dhidden, in[0]);
      a->backward_data(gradients[0], dhidden, in[1]);
    };
    return op;
  };
  Fixture expected(*reference, two_layers(*reference)), actual(*device, two_layers(*device));
  EXPECT_TRUE(same_results(actual, expected, random_inputs(expected.op(), 1), linear_tolerance));
}

INSTANTIATE_TEST_SUITE_P(Backends, LinearComparisonTest, ::testing::ValuesIn(rounding_backends()),
                         backend_label);

}  // namespace
}  // namespace duplex::test
