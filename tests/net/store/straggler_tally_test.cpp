#include "net/store/straggler_tally.h"

#include <gtest/gtest.h>

namespace duplex::net {
namespace {

/// One gradient comes in from `from` to `to`.
void comes(StragglerTally& tally, int worker, std::uint64_t step, std::int64_t from,
           std::int64_t to) {
  tally.begins(worker, from);
  tally.complete(worker, step, to);
}

TEST(StragglerTally, CountsTheTimeInWhichOnlyOneWorkerIsMissing) {
  StragglerTally tally({2, 2, 2});
  for (std::uint64_t step = 0; step < 2; ++step) {
    const auto begin = static_cast<std::int64_t>(1000 * step);
    comes(tally, 0, step, begin + 10, begin + 20);
    comes(tally, 0, step, begin + 20, begin + 30);
    comes(tally, 2, step, begin + 10, begin + 40);
    comes(tally, 1, step, begin + 20, begin + 35);
    comes(tally, 2, step, begin + 45, begin + 60);  // From here on worker 1 alone is missing.
    comes(tally, 1, step, begin + 100, begin + 130);
  }
  const std::vector<StragglerTime> sums = tally.sums();
  ASSERT_EQ(sums.size(), 1U);
  EXPECT_EQ(sums[0].worker, 1);
  EXPECT_EQ(sums[0].steps, 2U);
  EXPECT_EQ(sums[0].late_ns, 2 * 70);
  EXPECT_EQ(sums[0].receiving_ns, 2 * 30);
}

TEST(StragglerTally, AGradientThatIsOnItsWayCountsFromTheMomentOfWaiting) {
  StragglerTally tally({1, 1});
  tally.begins(1, 10);
  comes(tally, 0, 0, 20, 30);
  tally.complete(1, 0, 50);
  ASSERT_EQ(tally.sums().size(), 1U);
  EXPECT_EQ(tally.sums()[0].late_ns, 20);
  EXPECT_EQ(tally.sums()[0].receiving_ns, 20);
}

/// In a simulation, a worker's frames may share its link.
TEST(StragglerTally, GradientsOfAWorkerThatComeAtTheSameTimeCountOnce) {
  StragglerTally tally({2, 2});
  tally.begins(1, 10);
  comes(tally, 0, 0, 0, 20);
  comes(tally, 0, 0, 20, 40);  // From here on worker 1 alone is missing.
  tally.begins(1, 50);
  tally.complete(1, 0, 60);
  tally.complete(1, 0, 70);
  ASSERT_EQ(tally.sums().size(), 1U);
  EXPECT_EQ(tally.sums()[0].late_ns, 30);
  EXPECT_EQ(tally.sums()[0].receiving_ns, 30);
}

TEST(StragglerTally, StepsMayOverlapAndTheMostExpensiveWorkerComesFirst) {
  StragglerTally tally({2, 2});
  comes(tally, 0, 0, 0, 10);
  comes(tally, 1, 0, 0, 10);
  comes(tally, 0, 0, 10, 20);
  comes(tally, 0, 1, 20, 30);   // Chunk 0 of the next step, while chunk 1 of this one is missing.
  comes(tally, 1, 0, 20, 100);  // Worker 1 was 80 late in step 0.
  comes(tally, 1, 1, 100, 110);
  comes(tally, 1, 1, 110, 120);
  comes(tally, 0, 1, 110, 125);  // Worker 0 was 5 late in step 1.
  const std::vector<StragglerTime> sums = tally.sums();
  ASSERT_EQ(sums.size(), 2U);
  EXPECT_EQ(sums[0].worker, 1);
  EXPECT_EQ(sums[0].late_ns, 80);
  EXPECT_EQ(sums[1].worker, 0);
  EXPECT_EQ(sums[1].late_ns, 5);
}

TEST(StragglerTally, NobodyWaitsForAnOnlyWorker) {
  StragglerTally tally({1});
  comes(tally, 0, 0, 0, 10);
  EXPECT_TRUE(tally.sums().empty());
}

}  // namespace
}  // namespace duplex::net
