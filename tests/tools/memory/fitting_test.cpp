// Tests the search for the largest batch that fits into a limit.
#include "tools/memory/fitting.h"

#include <gtest/gtest.h>

namespace duplex::tools {
namespace {

TEST(LargestBatch, IsTheLastThatFits) {
  const auto line = [](std::int64_t batch) { return static_cast<std::size_t>(100 + 7 * batch); };
  EXPECT_EQ(largest_batch(106, 32, line), std::nullopt);
  EXPECT_EQ(largest_batch(107, 32, line), 1);
  EXPECT_EQ(largest_batch(113, 32, line), 1);
  EXPECT_EQ(largest_batch(114, 32, line), 2);
  EXPECT_EQ(largest_batch(100 + 7 * 1000 + 3, 32, line), 1000);
  EXPECT_EQ(largest_batch(100 + 7 * 1000, 5000, line), 1000);
}

/// From some batch on an operation takes an algorithm that needs more.
TEST(LargestBatch, IsFoundWhereThereIsAStep) {
  for (const std::int64_t step : {2, 3, 77, 1000}) {
    int looks = 0;
    const auto needs = [&](std::int64_t batch) {
      ++looks;
      return static_cast<std::size_t>(7 * batch + (batch >= step ? 100000 : 0));
    };
    EXPECT_EQ(largest_batch(7 * 5000, 32, needs), step - 1);
    EXPECT_LE(looks, 40);
  }
}

}  // namespace
}  // namespace duplex::tools
