// Ranks that take longer than the time-out, and say that they get on.
#include "net/connection/progress.h"

#include <gtest/gtest.h>

namespace duplex::net {
namespace {

TEST(Progress, IsToldByNumbersThatGrow) {
  Progress progress(1, 3);
  const Deadline never;
  EXPECT_EQ(progress.last(0), never);
  EXPECT_EQ(progress.last_of_others(), never);
  const Deadline before = Clock::now();
  progress.made();
  EXPECT_EQ(progress.count(), 1U);
  EXPECT_GE(progress.last(1), before);
  EXPECT_EQ(progress.last_of_others(), never);  // It is this rank's own.

  EXPECT_TRUE(progress.heard(2, 5));
  const Deadline heard = progress.last(2);
  EXPECT_GE(heard, before);
  EXPECT_FALSE(progress.heard(2, 5));  // That rank lives, and has not got on.
  EXPECT_EQ(progress.last(2), heard);
  EXPECT_EQ(progress.last_of_others(), heard);
  progress.moved(0);
  EXPECT_GE(progress.last(0), heard);
  EXPECT_EQ(progress.count(), 1U);
}

}  // namespace
}  // namespace duplex::net
