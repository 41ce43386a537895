// Tests the two losses.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "core/error.h"
#include "tests/core/operations/gradient_check.h"
#include "tests/core/operations/values.h"
#include "tests/core/recipes_recorded.h"

namespace duplex::test {
namespace {

/// A loss with its tensors.
struct LossFixture {
  Device& device;
  Memory memory;
  std::unique_ptr<Loss> loss;
  Tensor x, y, dx;

  LossFixture(Device& on, LossKind kind, const TensorDesc& desc, float smoothing = 0.0F)
      : device(on), memory(on), loss(on.loss({kind, smoothing}, desc)) {
    x = memory.poisoned(loss->x);
    y = memory.poisoned(loss->y);
    dx = memory.poisoned(loss->x);
  }

  double forward(const Values& values, const std::vector<std::int32_t>& labels) {
    device.upload(x, values.data());
    memory.poison(y);
    loss->forward(y, x, labels.data());
    return loss->value();
  }

  Values backward(float weight) {
    memory.poison(dx);
    loss->backward(dx, y, weight);
    return memory.read(dx);
  }
};

/// Returns the mean loss, in double, with exponentials that cannot overflow for the values tested.
double mean_loss(LossKind kind, std::int64_t classes, const Values& x,
                 const std::vector<std::int32_t>& labels) {
  double total = 0.0;
  for (std::size_t n = 0; n < labels.size(); ++n) {
    const float* row = x.data() + n * static_cast<std::size_t>(classes);
    double sum = 0.0, squares = 0.0;
    for (std::int64_t c = 0; c < classes; ++c) {
      sum += std::exp(double{row[c]});
      squares += std::pow(double{row[c]} - (c == labels[n] ? 1.0 : 0.0), 2.0);
    }
    total += kind == LossKind::softmax_cross_entropy ? std::log(sum) - double{row[labels[n]]}
                                                     : 0.5 * squares;
  }
  return total / static_cast<double>(labels.size());
}

const std::vector<LossKind> kinds = {LossKind::softmax_cross_entropy, LossKind::squared_error};

using LossTest = BackendTest;

// Three classes have the odds 1 : 2 : 5.
TEST_P(LossTest, SoftmaxByHand) {
  LossFixture fixture(*device, LossKind::softmax_cross_entropy, plain_desc({2, 3}));
  const float a = std::log(2.0F), b = std::log(5.0F);
  EXPECT_NEAR(fixture.forward({0, a, b, 7, 7 + a, 7 + b}, {2, 0}),
              -0.5 * (std::log(0.625) + std::log(0.125)), 1e-6);
  EXPECT_LE(relative_error(fixture.memory.read(fixture.y),
                           {0.125F, 0.25F, 0.625F, 0.125F, 0.25F, 0.625F}),
            1e-6);
  EXPECT_LE(relative_error(fixture.backward(1.0F),
                           {0.0625F, 0.125F, -0.1875F, -0.4375F, 0.125F, 0.3125F}),
            1e-6);
}

TEST_P(LossTest, SquaredErrorByHand) {
  LossFixture fixture(*device, LossKind::squared_error, plain_desc({2, 2}));
  EXPECT_DOUBLE_EQ(fixture.forward({0.5F, 2, 0, 3}, {0, 1}), 0.5 * (0.125 + 2.0 + 2.0));
  EXPECT_EQ(fixture.memory.read(fixture.y), (Values{0.5F, 2, 0, 3}));
  EXPECT_EQ(fixture.backward(1.0F), (Values{-0.25F, 1, 0, 1}));
}

TEST_P(LossTest, AgreesWithTheEquations) {
  for (LossKind kind : kinds) {
    for (const Shape& shape : {Shape{1, 1}, Shape{64, 10}, Shape{3, 1000}, Shape{5, 257, 1, 1}}) {
      SCOPED_TRACE(shape.str());
      LossFixture fixture(*device, kind, plain_desc(shape));
      const Values x = random_values(shape, 1, -5.0F, 5.0F);
      const auto labels = random_labels(shape.n(), shape.c(), 2);
      const double expected = mean_loss(kind, shape.c(), x, labels);
      EXPECT_NEAR(fixture.forward(x, labels), expected, loss_tolerance.forward * (1.0 + expected));
    }
  }
}

// The largest and the smallest logits that float32 holds overflow nothing.
TEST_P(LossTest, ExtremeLogits) {
  LossFixture fixture(*device, LossKind::softmax_cross_entropy, plain_desc({2, 3}));
  const double loss = fixture.forward({1e4F, 0, -1e4F, -3e38F, 0, 0}, {0, 0});
  EXPECT_NEAR(loss / 1.5e38, 1.0, 1e-6);
  EXPECT_EQ(fixture.memory.read(fixture.y), (Values{1, 0, 0, 0, 0.5F, 0.5F}));
  EXPECT_EQ(fixture.backward(1.0F), (Values{0, 0, 0, -0.5F, 0.25F, 0.25F}));
  // A label whose probability is too small for float32 has a finite loss all the same.
  EXPECT_NEAR(fixture.forward({0, 200, 0, 0, 0, 200}, {0, 1}), 200.0, 1e-4);
}

TEST_P(LossTest, Gradients) {
  for (LossKind kind : kinds) {
    for (bool blocked : {false, true}) {
      for (const Shape& shape : {Shape{3, 5, 1, 1}, Shape{2, 17, 1, 1}}) {
        SCOPED_TRACE(shape.str());
        LossFixture fixture(*device, kind,
                            blocked ? convolved_desc(*device, shape) : plain_desc(shape));
        Values x = random_values(shape, 1, -2.0F, 2.0F);
        const auto labels = random_labels(shape.n(), shape.c(), 2);
        constexpr float weight = 0.3F;
        fixture.forward(x, labels);
        const Values gradient = fixture.backward(weight);
        EXPECT_TRUE(gradients_agree([&] { return double{weight} * fixture.forward(x, labels); },
                                    {{"x", &x, gradient}}, loss_tolerance));
      }
    }
  }
}

TEST_P(LossTest, SmoothedLabelsAreThoseOfPyTorch) {
  const Values logits(recorded::logits.begin(), recorded::logits.end());
  const std::vector<std::int32_t> labels(recorded::labels.begin(), recorded::labels.end());
  const auto expect = [&](float smoothing, double loss, const auto& gradient) {
    LossFixture fixture(*device, LossKind::softmax_cross_entropy, plain_desc({3, 5}), smoothing);
    EXPECT_NEAR(fixture.forward(logits, labels), loss, 1e-6);
    EXPECT_LE(relative_error(fixture.backward(1.0F), {gradient.begin(), gradient.end()}), 1e-6);
  };
  expect(0.1F, recorded::smoothed_tenth_loss, recorded::smoothed_tenth_gradient);
  expect(1.0F, recorded::smoothed_all_loss, recorded::smoothed_all_gradient);
}

TEST_P(LossTest, GradientsOfSmoothedLabels) {
  for (LossKind kind : kinds) {
    for (bool blocked : {false, true}) {
      const Shape shape{3, 5, 1, 1};
      LossFixture fixture(*device, kind,
                          blocked ? convolved_desc(*device, shape) : plain_desc(shape), 0.25F);
      Values x = random_values(shape, 1, -2.0F, 2.0F);
      const auto labels = random_labels(shape.n(), shape.c(), 2);
      fixture.forward(x, labels);
      const Values gradient = fixture.backward(1.0F);
      EXPECT_TRUE(gradients_agree([&] { return fixture.forward(x, labels); }, {{"x", &x, gradient}},
                                  loss_tolerance));
    }
  }
}

// Without labels, as in inference, forward computes y alone; the last labels and loss stay.
TEST_P(LossTest, WithoutLabels) {
  for (LossKind kind : kinds) {
    LossFixture fixture(*device, kind, plain_desc({2, 3}));
    const Values x = {0, 1, 2, 3, 4, 6};
    const double loss = fixture.forward(x, {1, 2});
    const Values y = fixture.memory.read(fixture.y);
    fixture.memory.poison(fixture.y);
    fixture.loss->forward(fixture.y, fixture.x, nullptr);
    EXPECT_EQ(fixture.memory.read(fixture.y), y);
    EXPECT_EQ(fixture.loss->value(), loss);
  }
}

TEST_P(LossTest, RefusesMapsAndLabelsOutOfRange) {
  EXPECT_THROW(device->loss({LossKind::squared_error}, plain_desc({2, 3, 2, 1})), Error);
  for (LossKind kind : kinds) {
    LossFixture fixture(*device, kind, plain_desc({2, 3}));
    EXPECT_THROW(fixture.forward({0, 0, 0, 0, 0, 0}, {0, 3}), Error);
    EXPECT_THROW(fixture.forward({0, 0, 0, 0, 0, 0}, {-1, 0}), Error);
  }
}

INSTANTIATE_TEST_SUITE_P(Backends, LossTest, ::testing::ValuesIn(backends()), backend_label);

using LossComparisonTest = ComparisonTest;

TEST_P(LossComparisonTest, Everywhere) {
  for (LossKind kind : kinds) {
    for (bool blocked : {false, true}) {
      for (const Shape& shape : {Shape{64, 10, 1, 1}, Shape{1, 1000, 1, 1}, Shape{7, 101, 1, 1},
                                 Shape{128, 257, 1, 1}}) {
        SCOPED_TRACE(shape.str() + (blocked ? " convolved" : ""));
        LossFixture expected(*reference, kind, plain_desc(shape));
        LossFixture actual(*device, kind,
                           blocked ? convolved_desc(*device, shape) : plain_desc(shape));
        const Values x = random_values(shape, 1, -6.0F, 6.0F);
        const auto labels = random_labels(shape.n(), shape.c(), 2);
        const double value = expected.forward(x, labels);
        EXPECT_NEAR(actual.forward(x, labels), value, loss_tolerance.forward * value);
        EXPECT_LE(relative_error(actual.memory.read(actual.y), expected.memory.read(expected.y)),
                  loss_tolerance.forward);
        EXPECT_LE(relative_error(actual.backward(0.3F), expected.backward(0.3F)),
                  loss_tolerance.backward);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Backends, LossComparisonTest, ::testing::ValuesIn(fast_backends()),
                         backend_label);

}  // namespace
}  // namespace duplex::test
