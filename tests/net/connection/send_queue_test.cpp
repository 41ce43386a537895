// Several send queues take turns at sending weights, with one semaphore.
#include "net/connection/send_queue.h"

#include <gtest/gtest.h>

#include <memory>

#include "net/connection/queued_semaphore.h"

namespace duplex::net {
namespace {

/// Send queues whose transfers have `transfer` frames.
class WeightsTurns : public ::testing::Test {
 protected:
  static constexpr std::size_t transfer = 3;

  void SetUp() override {
    for (int who = 0; who < 3; ++who)
      queues_[who].take_turns(false, transfer, [this, who](SendOrder::TurnRequest what) {
        if (what == SendOrder::TurnRequest::want)
          semaphore_.ask(who);
        else if (what == SendOrder::TurnRequest::leave)
          semaphore_.leave(who);
        else
          semaphore_.step_aside(who, what == SendOrder::TurnRequest::step_aside_waiting);
      });
  }
  void give(int who, std::uint32_t parameter, std::uint64_t step = 1) {
    Outgoing frame;
    frame.header.kind = FrameKind::weights;
    frame.header.parameter = parameter;
    frame.header.step = step;
    frame.priority = parameter;
    queues_[who].data(std::move(frame));
  }
  /// The parameter of the frame that a queue sends now, after it has sent the last; -1: none may
  /// leave.
  int sends(int who) {
    Outgoing frame;
    EXPECT_TRUE(queues_[who].take(frame, Clock::now()));
    if (frame.header.kind == FrameKind::heartbeat) return -1;
    return static_cast<int>(frame.header.parameter);
  }

  SendQueue queues_[3];
  QueuedSemaphore semaphore_{[this](int who) { queues_[who].grant_weights(); },
                             [this](int who) { queues_[who].want_weights_turn(); }};
};

TEST(SendQueue, TakesWhatMayLeaveAndDoesNotWait) {
  SendQueue queue;
  Outgoing frame;
  EXPECT_FALSE(queue.take(frame));
  for (const std::uint64_t priority : {2U, 1U}) {
    frame = Outgoing();
    frame.header.kind = FrameKind::gradient;
    frame.priority = priority;
    queue.data(std::move(frame));
  }
  EXPECT_TRUE(queue.take(frame));
  EXPECT_EQ(frame.priority, 1U);
  EXPECT_TRUE(queue.take(frame, Clock::now()));
  EXPECT_EQ(frame.priority, 2U);
  EXPECT_FALSE(queue.wait_until_idle(Clock::now()));  // It is on its way out.
  EXPECT_FALSE(queue.take(frame));
  EXPECT_TRUE(queue.wait_until_idle(Clock::now()));
  queue.close();
  EXPECT_FALSE(queue.take(frame));
}

TEST_F(WeightsTurns, AreInTheOrderInWhichTransfersBegan) {
  for (const int who : {1, 0, 2})
    for (std::uint32_t p = 0; p < transfer; ++p) give(who, p);
  EXPECT_EQ(sends(0), -1);
  for (const int who : {1, 0, 2}) {
    for (int p = 0; p < 3; ++p) EXPECT_EQ(sends(who), p);
    EXPECT_EQ(sends(who), -1);
  }
}

TEST_F(WeightsTurns, GoToTheNextWhileTheFirstHasNothing) {
  for (const int who : {0, 1, 2}) give(who, 0);
  EXPECT_EQ(sends(0), 0);
  EXPECT_EQ(sends(1), -1);  // The frame of queue 0 may still be on its way out.
  EXPECT_EQ(sends(0), -1);
  EXPECT_EQ(sends(1), 0);
  for (const int who : {0, 1, 2}) give(who, 1);
  EXPECT_EQ(sends(0), -1);  // The frame of queue 1 may still be.
  EXPECT_EQ(sends(1), -1);
  EXPECT_EQ(sends(0), 1);
  give(0, 2);
  EXPECT_EQ(sends(0), 2);
  EXPECT_EQ(sends(2), -1);
  give(0, 0, 2);  // Its next transfer comes after those that have begun.
  EXPECT_EQ(sends(0), -1);
  EXPECT_EQ(sends(1), 1);
  EXPECT_EQ(sends(1), -1);
  EXPECT_EQ(sends(2), 0);
  EXPECT_EQ(sends(2), 1);
  EXPECT_EQ(sends(2), -1);
  EXPECT_EQ(sends(0), 0);
  give(1, 2);
  EXPECT_EQ(sends(0), -1);
  EXPECT_EQ(sends(1), 2);
}

}  // namespace
}  // namespace duplex::net
