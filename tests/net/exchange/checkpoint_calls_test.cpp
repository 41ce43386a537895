// Calls for checkpoints, which every rank passes on once.
#include "net/exchange/checkpoint_calls.h"

#include <gtest/gtest.h>

#include "net/wire/frame.h"

namespace duplex::net {
namespace {

TEST(CheckpointCalls, EachIsNewOnceAndTakenOnce) {
  CheckpointCalls calls;
  EXPECT_TRUE(calls.add({7, 0}));
  EXPECT_FALSE(calls.add({7, 0}));
  EXPECT_TRUE(calls.add({9, 15}));
  EXPECT_FALSE(calls.take(6));
  const auto call = calls.take(7);
  ASSERT_TRUE(call);
  EXPECT_EQ(call->steps, 7U);
  EXPECT_EQ(call->signal, 0);
  EXPECT_FALSE(calls.take(7));
  EXPECT_FALSE(calls.add({7, 0})) << "an echo of what is over is not passed on again";
  EXPECT_EQ(calls.take(9)->signal, 15);
}

TEST(CheckpointCalls, ASignalIsAddedToACallForTheSameStep) {
  CheckpointCalls calls;
  EXPECT_TRUE(calls.add({7, 0}));
  EXPECT_TRUE(calls.add({7, 2}));
  EXPECT_TRUE(calls.add({7, 15}));
  EXPECT_FALSE(calls.add({7, 2})) << "in whatever order they come, all ranks take the same";
  EXPECT_EQ(calls.take(7)->signal, 15);
}

TEST(CheckpointCalls, ASignalCountsForMoreThanAPause) {
  for (const bool pause_first : {true, false}) {
    CheckpointCalls calls;
    EXPECT_TRUE(calls.add({7, pause_first ? pause_mark : 2}));
    EXPECT_EQ(calls.add({7, pause_first ? 2 : pause_mark}), pause_first);
    EXPECT_EQ(calls.take(7)->signal, 2);
  }
}

TEST(CheckpointCalls, ATrainingThatHasComeToItsEndStandsBetweenThem) {
  const auto both = [](int first, int second) {
    CheckpointCalls calls;
    calls.add({7, first});
    calls.add({7, second});
    const int taken = calls.take(7)->signal;
    calls.ask(first);
    calls.ask(second);
    EXPECT_EQ(calls.take_asked(), taken);
    return taken;
  };
  for (const int other : {pause_mark, 0}) {
    EXPECT_EQ(both(reached_mark, other), reached_mark);
    EXPECT_EQ(both(other, reached_mark), reached_mark);
  }
  EXPECT_EQ(both(reached_mark, 15), 15);
  EXPECT_EQ(both(2, reached_mark), 2);
}

TEST(CheckpointCalls, TooManyAreRefused) {
  CheckpointCalls calls;
  for (std::uint64_t steps = 1; steps <= CheckpointCalls::most_open; ++steps)
    EXPECT_TRUE(calls.add({steps, 0}));
  EXPECT_THROW(calls.add({1000, 0}), ProtocolError);
}

TEST(CheckpointCalls, WhatSomebodyCouldNotWriteIsNewOnce) {
  CheckpointCalls calls;
  EXPECT_TRUE(calls.add_unwritten(8));
  EXPECT_FALSE(calls.add_unwritten(8));
  EXPECT_TRUE(calls.add_unwritten(4));
  EXPECT_EQ(calls.unwritten(), (std::set<std::uint64_t>{4, 8}));
  for (std::uint64_t steps = 100; steps < 100 + CheckpointCalls::most_open; ++steps)
    EXPECT_TRUE(calls.add_unwritten(steps));
  EXPECT_FALSE(calls.add_unwritten(8)) << "only the newest are known";
  EXPECT_EQ(calls.unwritten().size(), CheckpointCalls::most_open);
}

TEST(CheckpointCalls, WhatIsAskedForIsTakenOnce) {
  CheckpointCalls calls;
  EXPECT_FALSE(calls.take_asked());
  calls.ask(0);
  EXPECT_EQ(calls.take_asked(), 0);
  calls.ask(15);
  calls.ask(0);
  EXPECT_EQ(calls.take_asked(), 15);
  EXPECT_FALSE(calls.take_asked());
}

}  // namespace
}  // namespace duplex::net
