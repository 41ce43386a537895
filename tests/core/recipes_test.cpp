// Tests the parts of published recipes against what PyTorch makes of them.
#include <gtest/gtest.h>

#include <cstdint>

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

}  // namespace
}  // namespace duplex
