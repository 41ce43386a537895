#include "net/store/staleness.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace duplex::net::testing {
namespace {

TEST(StalenessTally, HasARowAStep) {
  StalenessTally tally(2);
  tally.add(1, 2, 3);
  tally.add(1, 2, 5);
  tally.add(0, 0, 1);
  const std::vector<Staleness> rows = tally.rows();
  ASSERT_EQ(rows.size(), 4U);
  EXPECT_EQ(rows[0].worker, 0);
  EXPECT_EQ(rows[3].worker, 1);
  EXPECT_EQ(rows[3].step, 2U);
  EXPECT_EQ(rows[3].chunks, 2U);
  EXPECT_EQ(rows[3].sum, 8U);
  EXPECT_EQ(rows[3].most, 5U);
  EXPECT_EQ(rows[3].steps, 1U);
}

/// However many steps there are, its memory is bounded, and nothing is lost of the sums.
TEST(StalenessTally, MakesRowsOfManySteps) {
  constexpr std::uint64_t steps = 3 * StalenessTally::most_rows + 17;
  StalenessTally tally(2);
  for (std::uint64_t step = 0; step < steps; ++step)
    for (const int worker : {0, 1})
      if (worker == 0 || step < 100) tally.add(worker, step, step);
  StalenessTally again(2);
  for (const Staleness& row : tally.rows()) again.add(row);
  for (const StalenessTally* each : {&tally, &again}) {
    std::uint64_t chunks[2] = {}, sum = 0, next = 0;
    std::size_t rows = 0;
    for (const Staleness& row : each->rows()) {
      EXPECT_EQ(row.steps, 4U);
      EXPECT_EQ(row.step % row.steps, 0U);
      chunks[row.worker] += row.chunks;
      if (row.worker != 0) continue;
      ++rows;
      sum += row.sum;
      EXPECT_EQ(row.step, next);
      EXPECT_EQ(row.most, std::min(row.step + 3, steps - 1));
      next += row.steps;
    }
    EXPECT_LE(rows, StalenessTally::most_rows);
    EXPECT_EQ(chunks[0], steps);
    EXPECT_EQ(chunks[1], 100U);
    EXPECT_EQ(sum, steps * (steps - 1) / 2);
  }
}

}  // namespace
}  // namespace duplex::net::testing
