// The pace of ranks that exchange, against a simulated link of known rate.
#include "net/connection/pace.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <vector>

namespace duplex::net {
namespace {

constexpr double model = 150e6;  ///< Bytes that go out in a step.
constexpr double windows = 1.5e6;
constexpr std::size_t peers = 7;

/// A rank's link, the queue before it, and the ranks behind it, which begin a step when the one
/// before has ended. Links are idle for a moment then, so that half of the queue drains.
struct Line {
  double rate = 120e6;   ///< Bytes a second.
  double others = 0;     ///< Bytes of other traffic that always wait with this run's.
  double busy = 1;       ///< Part of a step in which connections have something to send.
  double late = 0;       ///< Seconds for which this machine stops in the next step.
  double out = model;    ///< Bytes that go out in a step.
  double queue = 0;      ///< Bytes of this run in the queue.
  double step_time = 0;  ///< Seconds of the last step.
  Pace pace;
  std::optional<double> paced;

  void step() {
    const double sent = std::min(paced.value_or(1e12), 10 * rate);
    const double idle = 0.004 * std::min(1.0, queue / windows);
    const double active = out / std::min(sent, rate);
    step_time = active * (1 + idle) / busy + late;
    queue = std::clamp(queue / 2 + (sent / rate - 1) * out - late * rate, 0.0, 0.9 * windows);
    late = 0;
    now += std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(step_time));
    for (Flow& flow : flows) {
      flow.acknowledged += static_cast<std::uint64_t>(out / peers);
      flow.busy += std::chrono::microseconds(static_cast<long>(active * 1e6));
      flow.queued = std::chrono::microseconds(static_cast<long>((queue + others) / rate * 1e6));
    }
    paced = pace.step(now, flows, windows);
  }
  void steps(int count) {
    for (int i = 0; i < count; ++i) step();
  }
  /// The least seconds that a step takes.
  double floor() const { return out / rate; }

  Clock::time_point now{std::chrono::hours(1)};
  std::vector<Flow> flows = std::vector<Flow>(peers);
};

TEST(Pace, FindsTheRateOfALink) {
  for (const double rate : {12e6, 120e6, 1200e6}) {
    Line line;
    line.rate = rate;
    line.steps(2);
    EXPECT_FALSE(line.paced);  // Nothing is known yet.
    line.steps(2);
    ASSERT_TRUE(line.paced);
    line.steps(30);
    for (int i = 0; i < 20; ++i) {
      line.step();
      ASSERT_TRUE(line.paced);
      EXPECT_NEAR(*line.paced / rate, 1, 0.005);
      EXPECT_LT(line.step_time, 1.002 * line.floor());
      EXPECT_GT(line.queue, 0.2 * windows);
      EXPECT_LT(line.queue, 0.6 * windows);
    }
  }
}

TEST(Pace, DoesNotTakeAnIdleLinkForASlowOne) {
  Line line;
  line.busy = 0.92;
  line.steps(4);
  ASSERT_TRUE(line.paced);
  EXPECT_NEAR(*line.paced / line.rate, 1, 0.01);
}

TEST(Pace, FollowsALinkThatGetsFaster) {
  Line line;
  line.steps(20);
  line.rate *= 2;
  line.steps(40);
  EXPECT_LT(line.step_time, 1.005 * line.floor());
}

TEST(Pace, NeverHoldsUpALinkThatGetsSlower) {
  Line line;
  line.steps(20);
  line.rate /= 3;
  for (int i = 0; i < 100; ++i) {
    line.step();
    EXPECT_LT(line.step_time, 1.02 * line.floor()) << i;
    if (i < 10) continue;
    ASSERT_TRUE(line.paced);
    EXPECT_NEAR(*line.paced / line.rate, 1, 0.02);
  }
}

TEST(Pace, OutlastsAMachineThatStops) {
  Line line;
  line.steps(40);
  const double before = *line.paced;
  line.late = 0.5;
  line.step();
  for (int i = 0; i < 10; ++i) {
    ASSERT_TRUE(line.paced);
    EXPECT_NEAR(*line.paced / before, 1, 0.005);
    line.step();
  }
}

TEST(Pace, DoesNotGiveWayToTheTrafficOfOthersForEver) {
  Line line;
  line.steps(40);
  line.others = 2 * windows;
  double least = 1e12;
  int free = 0;
  for (int i = 0; i < 1000; ++i) {
    line.step();
    least = std::min(least, line.paced.value_or(line.rate));
    free += line.paced ? 0 : 1;
  }
  EXPECT_GT(least, 0.96 * line.rate);
  EXPECT_GT(free, 0);
}

TEST(Pace, LeavesStepsAloneThatDoMoreThanExchange) {
  Line line;
  line.busy = 0.8;
  line.steps(20);
  EXPECT_FALSE(line.paced);
  line.busy = 1;
  line.steps(20);
  EXPECT_TRUE(line.paced);
  line.busy = 0.8;
  line.step();
  EXPECT_TRUE(line.paced);  // It may be a single one, after a test of the network.
  line.step();
  EXPECT_FALSE(line.paced);
}

TEST(Pace, LeavesShortStepsAlone) {
  Line line;
  line.out = 10 * windows;
  line.steps(20);
  EXPECT_FALSE(line.paced);
}

TEST(Pace, OneConnectionThatOftenHasNothingToSendIsEnough) {
  Line line;
  for (int i = 0; i < 20; ++i) {
    line.flows[3].busy -= std::chrono::milliseconds(300);
    line.step();
  }
  EXPECT_FALSE(line.paced);
}

}  // namespace
}  // namespace duplex::net
