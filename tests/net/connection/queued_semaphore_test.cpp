// The queued semaphore serves in the order of asking; who steps aside keeps its place.
#include "net/connection/queued_semaphore.h"

#include <gtest/gtest.h>

#include <vector>

namespace duplex::net {
namespace {

TEST(QueuedSemaphore, ServesInTheOrderOfAsking) {
  std::vector<int> granted;
  QueuedSemaphore semaphore([&](int who) { granted.push_back(who); }, [](int) { FAIL(); });
  for (const int who : {3, 1, 2}) EXPECT_TRUE(semaphore.ask(who));
  EXPECT_FALSE(semaphore.ask(3));  // It holds the turn.
  EXPECT_FALSE(semaphore.ask(1));  // It is in the queue.
  EXPECT_EQ(granted, (std::vector<int>{3}));
  semaphore.leave(3);
  EXPECT_EQ(granted, (std::vector<int>{3, 1}));
  EXPECT_TRUE(semaphore.ask(3));
  semaphore.leave(2);  // It leaves the queue.
  semaphore.leave(7);  // It never was in the queue.
  semaphore.leave(1);
  EXPECT_EQ(granted, (std::vector<int>{3, 1, 3}));
  semaphore.leave(3);
  EXPECT_TRUE(semaphore.ask(4));
  EXPECT_EQ(granted, (std::vector<int>{3, 1, 3, 4}));
}

TEST(QueuedSemaphore, WhoStepsAsideKeepsItsPlace) {
  std::vector<int> granted, wanted;
  QueuedSemaphore semaphore([&](int who) { granted.push_back(who); },
                            [&](int who) { wanted.push_back(who); });
  for (const int who : {1, 2, 3}) EXPECT_TRUE(semaphore.ask(who));
  semaphore.step_aside(1, false);
  semaphore.step_aside(3, false);  // It does not hold the turn: nothing happens.
  EXPECT_EQ(granted, (std::vector<int>{1, 2}));
  EXPECT_TRUE(semaphore.ask(1));
  EXPECT_FALSE(semaphore.ask(1));
  EXPECT_EQ(wanted.front(), 2);
  semaphore.step_aside(2, true);
  EXPECT_EQ(granted, (std::vector<int>{1, 2, 1}));
  semaphore.step_aside(1, false);
  EXPECT_EQ(granted, (std::vector<int>{1, 2, 1, 2}));
  semaphore.leave(1);  // It gives up its place, and is then served last.
  EXPECT_TRUE(semaphore.ask(1));
  semaphore.leave(2);
  semaphore.step_aside(3, true);  // Nobody who waits comes before it.
  EXPECT_EQ(granted, (std::vector<int>{1, 2, 1, 2, 3, 3}));
  semaphore.leave(3);
  EXPECT_EQ(granted.back(), 1);
}

}  // namespace
}  // namespace duplex::net
