// Sets of steps that are kept as ranges.
#include "net/store/step_ranges.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

namespace duplex::net {
namespace {

/// Against a set of single steps, with random ranges.
TEST(StepRanges, AreTheStepsThatWerePutIn) {
  std::mt19937 random(7);
  StepRanges ranges;
  std::set<std::uint64_t> steps;
  for (int round = 0; round < 3000; ++round) {
    const std::uint64_t first = random() % 60, count = random() % 5;
    bool free = true;
    for (std::uint64_t step = first; step < first + count; ++step)
      free = free && steps.count(step) == 0;
    if (free) {
      ranges.add({first, first + count});
      for (std::uint64_t step = first; step < first + count; ++step) steps.insert(step);
    }
    ASSERT_EQ(ranges.count(), steps.size());
    ASSERT_EQ(ranges.empty(), steps.empty());
    if (round % 3 == 0 && !steps.empty()) {
      const std::uint64_t most = 1 + random() % 3;
      const StepRange last = ranges.take_last(most);
      ASSERT_EQ(last.end, *steps.rbegin() + 1);
      ASSERT_LE(last.count(), most);
      for (std::uint64_t step = last.first; step < last.end; ++step)
        ASSERT_EQ(steps.erase(step), 1U);
      if (last.count() < most && last.first > 0) {
        ASSERT_EQ(steps.count(last.first - 1), 0U);
      }
    }
    if (round % 11 == 0 && !steps.empty()) {
      const StepRange first_of_all = ranges.take_first();
      ASSERT_EQ(first_of_all.first, *steps.begin());
      for (std::uint64_t step = first_of_all.first; step < first_of_all.end; ++step)
        ASSERT_EQ(steps.erase(step), 1U);
      ASSERT_EQ(steps.count(first_of_all.end), 0U) << "all that follow one another";
    }
  }
}

TEST(StepRanges, NothingIsTakenOfNothing) {
  StepRanges ranges;
  ranges.add({5, 5});
  EXPECT_TRUE(ranges.empty());
  EXPECT_EQ(ranges.take_first().count(), 0U);
  EXPECT_EQ(ranges.take_last(4).count(), 0U);
}

}  // namespace
}  // namespace duplex::net
