// Tests batch normalisation against (2.9)-(2.12) written down directly, its gradients and running
// statistics, and the backends against each other.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "core/error.h"
#include "tests/core/operations/gradient_check.h"
#include "tests/core/operations/ops.h"
#include "tests/core/operations/values.h"

namespace duplex::test {
namespace {

BatchNormSpec batch_norm_spec(bool relu) {
  BatchNormSpec spec;
  spec.relu = relu;
  return spec;
}

/// Returns x, gamma away from 0, and beta.
std::vector<Values> batch_norm_inputs(const OpUnderTest& op, std::uint64_t seed) {
  std::vector<Values> inputs = random_inputs(op, seed);
  Values& gamma = inputs[inputs.size() - 2];
  for (float& value : gamma) value = 1.0F + 0.5F * value;
  return inputs;
}

/// The statistics that forward takes of one channel's values.
struct Statistics {
  double mean = 0.0, biased = 0.0, unbiased = 0.0;
};

std::vector<Statistics> statistics_of(const Shape& shape, const Values& x) {
  std::vector<Statistics> channels(static_cast<std::size_t>(shape.c()));
  const std::int64_t map = shape.h() * shape.w();
  const auto count = static_cast<double>(shape.n() * map);
  const auto channel = [&](std::size_t i) {
    return static_cast<std::size_t>(static_cast<std::int64_t>(i) / map % shape.c());
  };
  for (std::size_t i = 0; i < x.size(); ++i) channels[channel(i)].mean += double{x[i]} / count;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double square = std::pow(double{x[i]} - channels[channel(i)].mean, 2.0);
    channels[channel(i)].biased += square / count;
    channels[channel(i)].unbiased += square / (count - 1.0);
  }
  return channels;
}

/// A batch normalisation with its tensors.
struct Normalisation {
  Memory memory;
  std::unique_ptr<BatchNorm> norm;
  Tensor x, gamma, beta, mean, var, y;

  Normalisation(Device& device, const BatchNormSpec& spec, const TensorDesc& desc,
                const std::vector<Values>& inputs, const Values& running_mean,
                const Values& running_var)
      : memory(device), norm(device.batch_norm(spec, desc)) {
    const TensorDesc channels = plain_desc({desc.shape.c()});
    x = memory.holding(norm->x, inputs[0]);
    gamma = memory.holding(channels, inputs[1]);
    beta = memory.holding(channels, inputs[2]);
    mean = memory.holding(channels, running_mean);
    var = memory.holding(channels, running_var);
    y = memory.poisoned(norm->y);
  }
};

const std::vector<Shape> shapes = {{2, 3, 2, 4}, {5, 2, 1, 1}, {1, 4, 3, 3}, {3, 17, 2, 1}};

using BatchNormTest = BackendTest;

TEST_P(BatchNormTest, TrainingAgreesWithTheEquations) {
  for (const Shape& shape : shapes) {
    for (bool relu : {false, true}) {
      for (bool blocked : {false, true}) {
        SCOPED_TRACE(shape.str() + (relu ? " relu" : "") + (blocked ? " convolved" : ""));
        BatchNormSpec spec = batch_norm_spec(relu);
        spec.momentum = 0.25F;
        spec.epsilon = 1e-3F;
        const auto channels = static_cast<std::size_t>(shape.c());
        const Values x = random_values(shape, 1, -2.0F, 5.0F);
        const Values gamma = random_values({shape.c()}, 2), beta = random_values({shape.c()}, 3);
        const Values mean = random_values({shape.c()}, 4);
        const Values var = random_values({shape.c()}, 5, 0.5F, 2.0F);
        Normalisation run(*device, spec,
                          blocked ? convolved_desc(*device, shape) : plain_desc(shape),
                          {x, gamma, beta}, mean, var);
        run.norm->forward_training(run.y, run.mean, run.var, run.x, run.gamma, run.beta);

        const std::vector<Statistics> batch = statistics_of(shape, x);
        Values y(x.size()), new_mean(channels), new_var(channels);
        for (std::size_t i = 0; i < x.size(); ++i) {
          const std::size_t c = i / static_cast<std::size_t>(shape.h() * shape.w()) % channels;
          const double xhat =
              (double{x[i]} - batch[c].mean) / std::sqrt(batch[c].biased + double{spec.epsilon});
          const double value = double{gamma[c]} * xhat + double{beta[c]};
          y[i] = static_cast<float>(relu && value < 0.0 ? 0.0 : value);
        }
        for (std::size_t c = 0; c < channels; ++c) {
          new_mean[c] = static_cast<float>(0.75 * double{mean[c]} + 0.25 * batch[c].mean);
          new_var[c] = static_cast<float>(0.75 * double{var[c]} + 0.25 * batch[c].unbiased);
        }
        EXPECT_LE(relative_error(run.memory.read(run.y), y), batch_norm_tolerance.forward);
        EXPECT_LE(relative_error(run.memory.read(run.mean), new_mean),
                  batch_norm_tolerance.forward);
        EXPECT_LE(relative_error(run.memory.read(run.var), new_var), batch_norm_tolerance.forward);
      }
    }
  }
}

/// An addend comes before ReLU, and gives the bits of an addition of its own.
TEST_P(BatchNormTest, AnAddendIsAnAdditionBehindIt) {
  bool any = false;
  for (const Shape& shape : shapes) {
    for (const bool relu : {false, true}) {
      for (const bool blocked : {false, true}) {
        SCOPED_TRACE(shape.str() + (relu ? " relu" : "") + (blocked ? " convolved" : ""));
        const TensorDesc desc = blocked ? convolved_desc(*device, shape) : plain_desc(shape);
        const Values x = random_values(shape, 1, -2.0F, 5.0F), more = random_values(shape, 6);
        const Values gamma = random_values({shape.c()}, 2), beta = random_values({shape.c()}, 3);
        const Values mean = random_values({shape.c()}, 4);
        const Values var = random_values({shape.c()}, 5, 0.5F, 2.0F);
        Normalisation alone(*device, {}, desc, {x, gamma, beta}, mean, var);
        EXPECT_FALSE(device->batch_norm(batch_norm_spec(true), desc)->adds());
        if (!alone.norm->adds()) continue;
        any = true;
        Normalisation adding(*device, {}, desc, {x, gamma, beta}, mean, var);
        const auto add = device->add(relu, alone.norm->y, alone.norm->y);
        const Tensor other = alone.memory.holding(alone.norm->y, more);
        Tensor sum = alone.memory.poisoned(add->y);
        const auto compare = [&] {
          add->forward(sum, alone.y, other);
          EXPECT_EQ(adding.memory.read(adding.y), alone.memory.read(sum));
        };
        alone.norm->forward_training(alone.y, alone.mean, alone.var, alone.x, alone.gamma,
                                     alone.beta);
        adding.norm->forward_training(adding.y, adding.mean, adding.var, adding.x, adding.gamma,
                                      adding.beta, {&other, relu});
        compare();
        EXPECT_EQ(adding.memory.read(adding.var), alone.memory.read(alone.var));
        alone.norm->forward_inference(alone.y, alone.x, alone.gamma, alone.beta, alone.mean,
                                      alone.var);
        adding.norm->forward_inference(adding.y, adding.x, adding.gamma, adding.beta, adding.mean,
                                       adding.var, {&other, relu});
        compare();
      }
    }
  }
  EXPECT_EQ(any, device->name() == "cudnn");
}

/// Gradients of an addition behind it, summed by backward_sum() or before backward(), have the same
/// bits, and so have all gradients of the normalisation.
void compare_sums(Device& device, const Shape& shape, bool masked, bool blocked,
                  std::uint64_t count) {
  const TensorDesc desc = blocked ? convolved_desc(device, shape) : plain_desc(shape);
  const std::vector<Values> of_x = {random_values(shape, 1, -2.0F, 5.0F),
                                    random_values({shape.c()}, 2), random_values({shape.c()}, 3)};
  const Values mean = random_values({shape.c()}, 4),
               var = random_values({shape.c()}, 5, 0.5F, 2.0F);
  Normalisation one(device, {}, desc, of_x, mean, var);
  if (!one.norm->adds()) return;
  one.norm->forward_training(one.y, one.mean, one.var, one.x, one.gamma, one.beta);
  Memory& memory = one.memory;
  const TensorDesc channels = plain_desc({shape.c()});
  const Tensor y = memory.holding(one.norm->y, random_values(shape, 6));
  std::vector<Tensor> parts;
  for (std::uint64_t seed = 7; seed < 7 + count; ++seed)
    parts.push_back(memory.holding(one.norm->y, random_values(shape, seed)));
  const auto gradients = [&](bool at_once) {
    Tensor dy = memory.poisoned(one.norm->y), dx = memory.poisoned(one.norm->x);
    Tensor dgamma = memory.poisoned(channels), dbeta = memory.poisoned(channels);
    const Tensor* mask = masked ? &y : nullptr;
    if (at_once) {
      one.norm->backward_sum(dy, dgamma, dbeta, parts, mask, one.x);
    } else {
      device.gradient_sum(one.norm->y)->run(dy, parts, mask);
    }
    one.norm->backward(dx, dgamma, dbeta, dy, one.x, one.gamma);
    return std::vector<Values>{memory.read(dy), memory.read(dgamma), memory.read(dbeta),
                               memory.read(dx)};
  };
  const std::vector<Values> expected = gradients(false);
  EXPECT_EQ(gradients(true), expected);
  // Nothing is left of it for the backward that follows, and dy may be one of what it is the sum
  // of.
  EXPECT_EQ(gradients(false), expected);
  Tensor dgamma = memory.poisoned(channels), dbeta = memory.poisoned(channels);
  one.norm->backward_sum(parts[1], dgamma, dbeta, parts, masked ? &y : nullptr, one.x);
  EXPECT_EQ((std::vector<Values>{memory.read(parts[1]), memory.read(dgamma), memory.read(dbeta)}),
            (std::vector<Values>(expected.begin(), expected.end() - 1)));
}

using SummedGradientsTest = BackendTest;

TEST_P(SummedGradientsTest, AreThoseOfASumBeforeIt) {
  for (const Shape& shape : {Shape{2, 3, 2, 4}, Shape{5, 2, 1, 1}, Shape{3, 16, 4, 4}})
    for (const bool masked : {false, true})
      for (const bool blocked : {false, true})
        for (const std::uint64_t count : {3, 9, 20}) {
          SCOPED_TRACE(shape.str() + (masked ? " masked" : "") + (blocked ? " convolved" : "") +
                       ", " + std::to_string(count) + " gradients");
          compare_sums(*device, shape, masked, blocked, count);
        }
}

TEST_P(SummedGradientsTest, AreRefusedWhereNothingIsAdded) {
  const Shape shape{2, 3, 2, 4};
  const auto norm = device->batch_norm(batch_norm_spec(false), plain_desc(shape));
  if (norm->adds()) return;
  Memory memory(*device);
  Tensor dy = memory.poisoned(norm->y), channels = memory.poisoned(plain_desc({3}));
  EXPECT_THROW(norm->backward_sum(dy, channels, channels, {dy}, nullptr, dy), Error);
}

TEST_P(BatchNormTest, InferenceAgreesWithTheEquations) {
  for (const Shape& shape : shapes) {
    for (bool relu : {false, true}) {
      for (bool blocked : {false, true}) {
        SCOPED_TRACE(shape.str() + (relu ? " relu" : "") + (blocked ? " convolved" : ""));
        const BatchNormSpec spec = batch_norm_spec(relu);
        const Values x = random_values(shape, 1, -2.0F, 5.0F);
        const Values gamma = random_values({shape.c()}, 2), beta = random_values({shape.c()}, 3);
        const Values mean = random_values({shape.c()}, 4);
        const Values var = random_values({shape.c()}, 5, 0.5F, 2.0F);
        Normalisation run(*device, spec,
                          blocked ? convolved_desc(*device, shape) : plain_desc(shape),
                          {x, gamma, beta}, mean, var);
        run.norm->forward_inference(run.y, run.x, run.gamma, run.beta, run.mean, run.var);
        Values y(x.size());
        for (std::size_t i = 0; i < x.size(); ++i) {
          const std::size_t c = i / static_cast<std::size_t>(shape.h() * shape.w()) % mean.size();
          const double value = double{gamma[c]} * (double{x[i]} - double{mean[c]}) /
                                   std::sqrt(double{var[c]} + double{spec.epsilon}) +
                               double{beta[c]};
          y[i] = static_cast<float>(relu && value < 0.0 ? 0.0 : value);
        }
        EXPECT_LE(relative_error(run.memory.read(run.y), y), batch_norm_tolerance.forward);
        EXPECT_EQ(run.memory.read(run.mean), mean);
        EXPECT_EQ(run.memory.read(run.var), var);
      }
    }
  }
}

// Values whose spread is small beside their mean lose no digits: the variance is not the difference
// of two large sums.
TEST_P(BatchNormTest, LargeMean) {
  const Shape shape = {4, 2, 8, 8};
  Values x = random_values(shape, 1);
  for (float& value : x) value += 1000.0F;  // This rounds some digits away; the rest is the input.
  const Values ones = {1, 1}, zeros = {0, 0};
  Normalisation run(*device, batch_norm_spec(false), plain_desc(shape), {x, ones, zeros}, zeros,
                    zeros);
  run.norm->forward_training(run.y, run.mean, run.var, run.x, run.gamma, run.beta);
  const std::vector<Statistics> batch = statistics_of(shape, x);
  Values y(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    const Statistics& channel = batch[i / 64 % 2];
    y[i] = static_cast<float>((double{x[i]} - channel.mean) /
                              std::sqrt(channel.biased + double{1e-5F}));
  }
  EXPECT_LE(relative_error(run.memory.read(run.y), y), large_mean_tolerance);
}

// A channel of one value has variance 0, and no unbiased variance, which counts as 0.
TEST_P(BatchNormTest, OneValueAChannel) {
  const Values x = {3, -4}, gamma = {2, 2}, beta = {0.5F, -1};
  Normalisation run(*device, batch_norm_spec(false), plain_desc({1, 2, 1, 1}), {x, gamma, beta},
                    {1, 1}, {1, 1});
  run.norm->forward_training(run.y, run.mean, run.var, run.x, run.gamma, run.beta);
  EXPECT_EQ(run.memory.read(run.y), beta);
  EXPECT_LE(relative_error(run.memory.read(run.mean), {1.2F, 0.5F}), 1e-6);
  EXPECT_LE(relative_error(run.memory.read(run.var), {0.9F, 0.9F}), 1e-6);
}

TEST_P(BatchNormTest, Gradients) {
  for (const Shape& shape : shapes) {
    SCOPED_TRACE(shape.str());
    for (const auto& place : {on_plain, on_convolved}) {
      Fixture fixture(*device, place(*device, {shape}, batch_norm_op(batch_norm_spec(false))));
      EXPECT_TRUE(
          gradients_agree(fixture, batch_norm_inputs(fixture.op(), 5), batch_norm_tolerance));
    }
  }
}

TEST_P(BatchNormTest, GradientsWithRelu) {
  Tolerance tolerance = batch_norm_tolerance;
  tolerance.step = 0.01;
  for (const Shape& shape : {Shape{2, 3, 3, 4}, Shape{9, 4, 1, 1}, Shape{3, 17, 2, 2}}) {
    SCOPED_TRACE(shape.str());
    for (const auto& place : {on_plain, on_convolved}) {
      Fixture fixture(*device, place(*device, {shape}, batch_norm_op(batch_norm_spec(true))));
      Fixture before_relu(*device, place(*device, {shape}, batch_norm_op(batch_norm_spec(false))));
      EXPECT_TRUE(
          gradients_agree(fixture, batch_norm_inputs(fixture.op(), 5), tolerance, &before_relu));
    }
  }
}

// Batch normalisation masks dy itself; masking it before does no harm.
TEST_P(BatchNormTest, MaskingTwiceDoesNoHarm) {
  Fixture fixture(*device,
                  on_convolved(*device, {{2, 5, 3, 3}}, batch_norm_op(batch_norm_spec(true))));
  const Values y = fixture.forward(batch_norm_inputs(fixture.op(), 5));
  Values dy = random_values(fixture.op().y.shape, 6), masked = dy;
  for (std::size_t i = 0; i < dy.size(); ++i) {
    if (!(y[i] > 0.0F)) masked[i] = 0.0F;
  }
  ASSERT_NE(dy, masked);
  EXPECT_EQ(fixture.backward(dy), fixture.backward(masked));
}

INSTANTIATE_TEST_SUITE_P(Backends, BatchNormTest, ::testing::ValuesIn(backends()), backend_label);

INSTANTIATE_TEST_SUITE_P(Backends, SummedGradientsTest, ::testing::ValuesIn(rounding_backends()),
                         backend_label);

using BatchNormComparisonTest = ComparisonTest;

TEST_P(BatchNormComparisonTest, Everywhere) {
  std::vector<Shape> all = {{2, 64, 14, 14}, {1, 100, 7, 9},  {3, 20, 5, 5},
                            {8, 33, 3, 1},   {4, 1, 6, 6},    {16, 48, 1, 1},
                            {2, 272, 6, 5},  {3, 24, 20, 20}, {700, 16, 1, 1}};
  all.insert(all.end(), shapes.begin(), shapes.end());
  for (const Shape& shape : all) {
    for (bool relu : {false, true}) {
      SCOPED_TRACE(shape.str() + (relu ? " relu" : ""));
      const OpMaker make = batch_norm_op(batch_norm_spec(relu));
      const OpMaker make_linear = batch_norm_op(batch_norm_spec(false));
      for (const auto& place : {on_plain, on_convolved, after_conv}) {
        Fixture expected(*reference, place(*reference, {shape}, make));
        Fixture actual(*device, place(*device, {shape}, make));
        Fixture before_relu(*reference, place(*reference, {shape}, make_linear));
        const std::vector<Values> inputs = batch_norm_inputs(expected.op(), 1);
        EXPECT_TRUE(same_results(actual, expected, inputs, batch_norm_tolerance,
                                 near_kink(before_relu, inputs, 1e-4)));
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Backends, BatchNormComparisonTest, ::testing::ValuesIn(fast_backends()),
                         backend_label);

}  // namespace
}  // namespace duplex::test
