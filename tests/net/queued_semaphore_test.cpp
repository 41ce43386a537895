// The queued semaphore: first come, first served.
#include "net/queued_semaphore.h"

#include <gtest/gtest.h>

#include <vector>

namespace duplex::net {
namespace {

TEST(QueuedSemaphore, ServesInTheOrderOfAsking) {
  std::vector<int> granted;
  QueuedSemaphore semaphore([&](int who) { granted.push_back(who); });
  for (const int who : {3, 1, 2}) EXPECT_TRUE(semaphore.ask(who));
  EXPECT_FALSE(semaphore.ask(3));  // Holds it.
  EXPECT_FALSE(semaphore.ask(1));  // Is in the queue.
  EXPECT_EQ(granted, (std::vector<int>{3}));
  semaphore.leave(3);
  EXPECT_EQ(granted, (std::vector<int>{3, 1}));
  EXPECT_TRUE(semaphore.ask(3));
  semaphore.leave(2);  // Out of the queue.
  semaphore.leave(7);  // Never was in it.
  semaphore.leave(1);
  EXPECT_EQ(granted, (std::vector<int>{3, 1, 3}));
  semaphore.leave(3);
  EXPECT_TRUE(semaphore.ask(4));
  EXPECT_EQ(granted, (std::vector<int>{3, 1, 3, 4}));
}

}  // namespace
}  // namespace duplex::net
