// Tests the parts of published recipes against what PyTorch makes of them.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <vector>

#include "core/optimiser.h"
#include "tests/core/recipes_recorded.h"

namespace duplex {
namespace {

LearningRate cosine(double least, std::uint64_t warmup, std::uint64_t steps) {
  LearningRate rate;
  rate.base = 0.4;
  rate.cosine = true;
  rate.least = least;
  rate.warmup = warmup;
  rate.steps = steps;
  return rate;
}

TEST(CosineRate, IsThatOfPyTorch) {
  const LearningRate rate = cosine(0.0, 0, recorded::cosine.size());
  for (std::size_t step = 0; step < recorded::cosine.size(); ++step)
    EXPECT_NEAR(rate.at(step), recorded::cosine[step], 1e-7) << "step " << step;
}

TEST(CosineRate, BehindAWarmUpIsThatOfPyTorch) {
  const LearningRate rate = cosine(0.02, 3, recorded::warm_cosine.size());
  for (std::size_t step = 0; step < recorded::warm_cosine.size(); ++step)
    EXPECT_NEAR(rate.at(step), recorded::warm_cosine[step], 1e-7) << "step " << step;
}

TEST(CosineRate, IsTheLeastBehindTheEnd) {
  const LearningRate rate = cosine(0.02, 3, 11);
  for (const std::uint64_t step : {11U, 12U, 1000U}) EXPECT_FLOAT_EQ(rate.at(step), 0.02F);
}

/// The weights after two steps with the recorded gradients, all clipped together.
std::vector<float> stepped(OptimiserSpec spec) {
  std::vector<float> weights(recorded::clip_weights.begin(), recorded::clip_weights.end());
  const auto& gradients = recorded::clip_gradients;
  std::vector<float> first(weights.size()), second(weights.size());
  float* state[] = {first.data(), second.data()};
  for (std::uint64_t number = 1; number <= 2; ++number) {
    OptimiserStep step{spec, 0.1F, number};
    if (spec.clip_norm > 0.0F)
      step.scale = clip_scale(spec.clip_norm, gradients.data(), gradients.size());
    update(step, weights.size(), weights.data(), gradients.data(), state);
  }
  return weights;
}

OptimiserSpec decayed(OptimiserKind kind, float momentum) {
  OptimiserSpec spec;
  spec.kind = kind;
  spec.momentum = momentum;
  spec.weight_decay = 0.05F;
  return spec;
}

template <class Recorded>
void expect_near(const std::vector<float>& found, const Recorded& expected) {
  for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(found[i], expected[i], 2e-6) << i;
}

TEST(Clipping, ByValueIsThatOfPyTorch) {
  const auto by_value = [](OptimiserSpec spec) {
    spec.clip_value = 0.75F;
    return stepped(spec);
  };
  expect_near(by_value({}), recorded::value_sgd);
  expect_near(by_value(decayed(OptimiserKind::sgd, 0.9F)), recorded::value_momentum);
  expect_near(by_value(decayed(OptimiserKind::adam, 0.0F)), recorded::value_adam);
}

TEST(Clipping, ByNormIsThatOfPyTorch) {
  const auto by_norm = [](OptimiserSpec spec, float norm) {
    spec.clip_norm = norm;
    return stepped(spec);
  };
  expect_near(by_norm({}, 1.5F), recorded::norm_sgd);
  expect_near(by_norm(decayed(OptimiserKind::sgd, 0.9F), 1.5F), recorded::norm_momentum);
  expect_near(by_norm(decayed(OptimiserKind::adam, 0.0F), 1.5F), recorded::norm_adam);
  expect_near(by_norm({}, 100.0F), recorded::loose_norm_sgd);
}

TEST(Clipping, LeavesNoNumberAsItIs) {
  OptimiserSpec spec;
  spec.clip_value = 1.0F;
  float weights[] = {0.0F, 0.0F, 0.0F};
  const float gradients[] = {NAN, INFINITY, -INFINITY};
  update({spec, 1.0F, 1}, 3, weights, gradients, nullptr);
  EXPECT_TRUE(std::isnan(weights[0]));
  EXPECT_EQ(weights[1], -1.0F);
  EXPECT_EQ(weights[2], 1.0F);
}

TEST(Clipping, TheNormIsOfAllElements) {
  for (const std::size_t count :
       {std::size_t{1}, std::size_t{7}, std::size_t{8}, std::size_t{1003}}) {
    const std::vector<float> gradients(count, -2.0F);
    const double norm = 2.0 * std::sqrt(static_cast<double>(count));
    EXPECT_NEAR(clip_scale(0.5F, gradients.data(), count), 0.5 / norm, 1e-6);
    EXPECT_EQ(clip_scale(static_cast<float>(norm) + 1.0F, gradients.data(), count), 1.0F);
  }
  EXPECT_EQ(clip_scale(0.5F, nullptr, 0), 1.0F);
}

}  // namespace
}  // namespace duplex
