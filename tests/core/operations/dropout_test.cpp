// Tests dropout: only seed, stream, sample and channel decide which elements are zeroed.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "core/error.h"
#include "core/random.h"
#include "tests/core/operations/gradient_check.h"
#include "tests/core/operations/ops.h"
#include "tests/core/operations/values.h"

namespace duplex::test {
namespace {

const DropoutDraw draw = {42, 7, 1000};

using DropoutTest = BackendTest;

TEST_P(DropoutTest, DrawsBySample) {
  const RandomStream random(draw.seed, draw.stream);
  for (const Shape& shape : {Shape{3, 5, 2, 3}, Shape{2, 33, 3, 3}, Shape{1, 16, 4, 4}}) {
    SCOPED_TRACE(shape.str());
    const auto sample = static_cast<std::uint64_t>(shape.elements() / shape.n());
    for (float rate : {0.0F, 0.25F, 0.7F}) {
      for (const auto& place : {on_plain, on_convolved}) {
        Fixture fixture(*device, place(*device, {shape}, dropout_op(rate, draw)));
        const Values x = random_values(shape, 1), dy = random_values(shape, 2);
        Values y(x.size()), dx(x.size());
        for (std::size_t i = 0; i < x.size(); ++i) {
          const float factor =
              random.uniform(draw.first_sample * sample + i) < rate ? 0.0F : 1.0F / (1.0F - rate);
          y[i] = x[i] * factor;
          dx[i] = dy[i] * factor;
        }
        EXPECT_EQ(fixture.forward({x}), y);
        EXPECT_EQ(fixture.backward(dy)[0], dx);
      }
    }
  }
}

// One batch of four gives what two batches of two give.
TEST_P(DropoutTest, SameInAnyBatch) {
  const Values x(4 * 40, 1.0F);
  Fixture whole(*device, on_plain(*device, {{4, 40}}, dropout_op(0.5F, {1, 2, 10})));
  Fixture first(*device, on_plain(*device, {{2, 40}}, dropout_op(0.5F, {1, 2, 10})));
  Fixture second(*device, on_plain(*device, {{2, 40}}, dropout_op(0.5F, {1, 2, 12})));
  const Values half(2 * 40, 1.0F);
  Values parts = first.forward({half});
  const Values rest = second.forward({half});
  parts.insert(parts.end(), rest.begin(), rest.end());
  EXPECT_EQ(whole.forward({x}), parts);
}

// Channels 16 to 32 of 33, in the layouts of a convolution and of images, give what they do in a
// batch of whole samples.
TEST_P(DropoutTest, SameInAnyChannels) {
  constexpr std::int64_t samples = 3, map = 9, all = 33, first = 16, own = 17;
  const Shape shape{samples, all, 3, 3}, part{samples, own, 3, 3};
  const Values x = random_values(shape, 1);
  const auto channels = [&](const Values& values) {
    Values taken;
    for (std::int64_t n = 0; n < samples; ++n) {
      const auto begin = values.begin() + (n * all + first) * map;
      taken.insert(taken.end(), begin, begin + own * map);
    }
    return taken;
  };
  for (const auto& place : {on_plain, on_convolved}) {
    Fixture whole(*device, place(*device, {shape}, dropout_op(0.5F, {1, 2, 10})));
    Fixture some(*device,
                 place(*device, {part}, dropout_op(0.5F, {1, 2, 10, first * map, all * map})));
    EXPECT_EQ(some.forward({channels(x)}), channels(whole.forward({x})));
    EXPECT_EQ(some.backward(channels(x))[0], channels(whole.backward(x)[0]));
  }
}

// In 20,000 draws, the share of zeros is within five standard deviations of the rate.
TEST_P(DropoutTest, KeepsTheShareItShould) {
  const Shape shape = {2, 10000};
  Fixture fixture(*device, on_plain(*device, {shape}, dropout_op(0.3F, draw)));
  double kept = 0.0;
  for (float value : fixture.forward({Values(20000, 1.0F)})) kept += value != 0.0F ? 1.0 : 0.0;
  EXPECT_NEAR(kept / 20000.0, 0.7, 5.0 * std::sqrt(0.3 * 0.7 / 20000.0));
}

TEST_P(DropoutTest, Gradients) {
  for (const auto& place : {on_plain, on_convolved}) {
    Fixture fixture(*device, place(*device, {{2, 17, 2, 3}}, dropout_op(0.4F, draw)));
    EXPECT_TRUE(gradients_agree(fixture, random_inputs(fixture.op(), 5), dropout_tolerance));
  }
}

TEST_P(DropoutTest, GradientInPlace) {
  const TensorDesc desc = convolved_desc(*device, {2, 19, 3, 3});
  const auto dropout = device->dropout(0.5F, desc);
  Memory memory(*device);
  const Tensor x = memory.holding(desc, random_values(desc.shape, 1));
  Tensor y = memory.poisoned(dropout->y), dx = memory.poisoned(dropout->x);
  dropout->forward(y, x, draw);
  Tensor dy = memory.holding(dropout->y, random_values(desc.shape, 2));
  dropout->backward(dx, dy);
  dropout->backward(dy, dy);
  EXPECT_EQ(memory.read(dy), memory.read(dx));
}

TEST_P(DropoutTest, RefusesARateOfOne) {
  EXPECT_THROW(device->dropout(1.0F, plain_desc({2, 3})), Error);
  EXPECT_THROW(device->dropout(-0.1F, plain_desc({2, 3})), Error);
}

INSTANTIATE_TEST_SUITE_P(Backends, DropoutTest, ::testing::ValuesIn(backends()), backend_label);

}  // namespace
}  // namespace duplex::test
