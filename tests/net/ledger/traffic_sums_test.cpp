// The sums of steps while a run goes on, against those from all of its records at once; and the
// memory that they take.
#include "net/ledger/traffic_sums.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "tests/net/ledger/records.h"

namespace duplex::net {
namespace {

using testing::Collected;
using testing::record;
using testing::traffic_of;

/// The frames that cross the wire of a rank, by the time at which they are through.
struct Wire {
  std::vector<FrameRecord> records;
  std::vector<Interval> waits;           ///< In the order of their ends.
  std::vector<std::uint64_t> waits_for;  ///< Steps of the weights that were waited for.
};

/// A rank that trains and owns, among peers that do: in each step it sends and receives gradients,
/// then weights. Frames of a step overlap each other at will, and its weights those of the step
/// behind it, as far as the dependence between ranks lets them. `lag`: by how much longer each
/// peer's steps take than those of the first; all 1: they go in step.
Wire wire_of(const std::vector<int>& lag, std::uint64_t steps, int chunks,
             std::uint64_t first = 0) {
  Wire wire;
  std::mt19937_64 random(7);
  const auto within = [&](std::int64_t from, std::int64_t to) {
    return from + static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(to - from));
  };
  for (int peer = 0; peer < static_cast<int>(lag.size()); ++peer) {
    const std::int64_t step_ns = 10000 * lag[static_cast<std::size_t>(peer)];
    const auto count =
        static_cast<std::uint64_t>(static_cast<std::int64_t>(steps) * 10000 / step_ns);
    for (std::uint64_t i = 0; i < count; ++i) {
      const std::uint64_t step = first + i;
      const std::int64_t begin = static_cast<std::int64_t>(i) * step_ns;
      for (const bool sent : {false, true})
        for (int chunk = 0; chunk < chunks; ++chunk) {
          // Initial weights, then gradients, then the weights that they make.
          const std::int64_t weights = within(begin, begin + 3000),
                             gradient = within(begin + 3000, begin + 9000);
          wire.records.push_back(record(FrameKind::weights, sent, step, weights,
                                        within(weights, begin + 3500), 32 + random() % 100, peer));
          wire.records.push_back(record(FrameKind::gradient, sent, step, gradient,
                                        within(gradient, begin + 9500), 32 + random() % 100, peer));
        }
      if (peer > 0) continue;
      const std::int64_t wait = within(begin, begin + 2000), until = within(wait, begin + 5000);
      wire.waits.push_back({wait, until});
      wire.waits_for.push_back(step);
    }
  }
  std::stable_sort(wire.records.begin(), wire.records.end(),
                   [](const FrameRecord& a, const FrameRecord& b) { return a.last < b.last; });
  return wire;
}

/// Plays a wire: what is through after each stretch of time is added, peer by peer, as a ledger
/// takes its lanes, and settled.
Collected play(const Wire& wire, std::int64_t stretch, std::uint64_t first = 0) {
  Collected collected;
  TrafficSums sums(first, collected.take());
  std::size_t record = 0, wait = 0;
  std::mt19937_64 random(3);
  for (std::int64_t now = stretch; record < wire.records.size(); now += stretch) {
    for (; wait < wire.waits.size() && wire.waits[wait].to <= now; ++wait)
      sums.waited(wire.waits[wait], wire.waits_for[wait]);
    const std::size_t from = record;
    while (record < wire.records.size() && wire.records[record].last <= now) ++record;
    std::vector<FrameRecord> lanes(wire.records.begin() + static_cast<std::ptrdiff_t>(from),
                                   wire.records.begin() + static_cast<std::ptrdiff_t>(record));
    const bool turned = random() % 2 == 0;
    std::stable_sort(lanes.begin(), lanes.end(), [&](const FrameRecord& a, const FrameRecord& b) {
      const auto lane = [](const FrameRecord& r) { return 2 * r.peer + (r.sent ? 1 : 0); };
      return turned ? lane(b) < lane(a) : lane(a) < lane(b);
    });
    for (const FrameRecord& each : lanes) sums.add(each);
    sums.close_finished();
  }
  sums.close();
  return collected;
}

void expect_same(const StepTraffic& sum, const StepTraffic& expected) {
  EXPECT_EQ(sum.sent, expected.sent) << "step " << expected.step;
  EXPECT_EQ(sum.received, expected.received) << "step " << expected.step;
  EXPECT_EQ(sum.sending_ns, expected.sending_ns) << "step " << expected.step;
  EXPECT_EQ(sum.receiving_ns, expected.receiving_ns) << "step " << expected.step;
  EXPECT_EQ(sum.wire_ns, expected.wire_ns) << "step " << expected.step;
  EXPECT_EQ(sum.exposed_ns, expected.exposed_ns) << "step " << expected.step;
}

TEST(TrafficSums, AreThoseOfAllRecordsAtOnce) {
  for (const std::uint64_t first : {0U, 500U}) {
    const Wire wire = wire_of({1, 1, 1}, 60, 5, first);
    const auto expected = traffic_of(wire.records, wire.waits, first);
    ASSERT_EQ(expected.size(), 60U);
    std::map<std::uint64_t, std::int64_t> waited;
    for (std::size_t i = 0; i < wire.waits.size(); ++i)
      if (wire.waits_for[i] > first)
        waited[wire.waits_for[i] - 1] += wire.waits[i].to - wire.waits[i].from;
    // From many stretches a step to several steps a stretch.
    for (const std::int64_t stretch : {137, 2500, 10000, 10700, 73000}) {
      const Collected sums = play(wire, stretch, first);
      ASSERT_EQ(sums.steps.size(), expected.size()) << stretch;
      for (const auto& [step, traffic] : expected) {
        expect_same(sums.steps.at(step), traffic);
        EXPECT_EQ(sums.steps.at(step).waited_ns, waited[step]);
        EXPECT_EQ(sums.parts.at(step), 1) << "step " << step << ", " << stretch;
      }
    }
  }
}

/// The streams of slow peers come to a step long after the others. All bytes are there, and all
/// times, but for what two parts of a step have in common.
TEST(TrafficSums, TakeWhatSlowPeersBringLate) {
  const Wire wire = wire_of({1, 1, 7, 7, 20}, 400, 3);
  const auto expected = traffic_of(wire.records, {});
  for (const std::int64_t stretch : {2500, 10000, 70000}) {
    const Collected sums = play(wire, stretch);
    ASSERT_EQ(sums.steps.size(), expected.size());
    std::int64_t found_ns = 0, expected_ns = 0;
    for (const auto& [step, traffic] : expected) {
      const StepTraffic& sum = sums.steps.at(step);
      EXPECT_EQ(sum.sent, traffic.sent) << "step " << step;
      EXPECT_EQ(sum.received, traffic.received) << "step " << step;
      EXPECT_GE(sum.wire_ns, traffic.wire_ns) << "step " << step;
      found_ns += sum.wire_ns;
      expected_ns += traffic.wire_ns;
      // Three groups of peers at most come to a step one after the other.
      EXPECT_LE(sums.parts.at(step), 3) << "step " << step;
    }
    EXPECT_LE(found_ns, expected_ns + expected_ns / 100);
    EXPECT_GT(sums.parts.at(10), 1);
  }
}

TEST(TrafficSums, ALateRecordIsAnotherPartOfItsStep) {
  Collected collected;
  TrafficSums sums(0, collected.take());
  for (std::uint64_t step = 0; step < 20; ++step) {
    const auto at = static_cast<std::int64_t>(1000 * step);
    sums.add(record(FrameKind::gradient, true, step, at, at + 100));
    sums.close_finished();
  }
  EXPECT_EQ(collected.parts.at(5), 1);
  for (std::uint64_t step = 0; step < 15; ++step)
    sums.add(record(FrameKind::gradient, false, step, 30000, 30070, 44, 9));
  sums.close();
  EXPECT_EQ(collected.parts.at(5), 2);
  EXPECT_EQ(collected.steps.at(5).sent, 100U);
  EXPECT_EQ(collected.steps.at(5).received, 44U);
  EXPECT_EQ(collected.steps.at(5).wire_ns, 170);
  EXPECT_EQ(collected.parts.at(16), 1);
  const TrafficSummary summary = sums.summary(1000);
  EXPECT_EQ(summary.steps, 19U);  // Without the first.
  EXPECT_EQ(summary.step_received, 44.0);
  EXPECT_NEAR(summary.wire_seconds, 170e-9, 1e-15);
}

/// A step is open as long as something of it may come.
TEST(TrafficSums, WaitForAllOfAStep) {
  const auto expect = [](Collected& collected, TrafficSums& sums, std::uint64_t step,
                         std::int64_t exposed_ns) {
    sums.close();
    EXPECT_EQ(collected.parts.at(step), 1);
    EXPECT_EQ(collected.steps.at(step).received, 200U);
    EXPECT_EQ(collected.steps.at(step).wire_ns, 150);
    EXPECT_EQ(collected.steps.at(step).exposed_ns, exposed_ns);
  };
  const auto gradient = [](std::uint64_t step, std::int64_t first, int peer) {
    return record(FrameKind::gradient, false, step, first, first + 100, 100, peer);
  };
  {  // One stream has come to the step before it, the other is three steps further.
    Collected collected;
    TrafficSums sums(0, collected.take());
    for (std::uint64_t step = 0; step < 5; ++step) {
      sums.add(gradient(step, static_cast<std::int64_t>(1000 * step), 1));
      if (step == 0) sums.add(gradient(0, 50, 2));
      sums.close_finished();
    }
    sums.close_finished();
    sums.add(gradient(1, 1050, 2));
    expect(collected, sums, 1, 0);
  }
  {  // A wait ends that began during the step, when all streams are in the one behind it.
    Collected collected;
    TrafficSums sums(0, collected.take());
    for (const std::uint64_t step : {1U, 2U}) {
      sums.add(gradient(step, static_cast<std::int64_t>(1000 * step), 1));
      sums.add(gradient(step, static_cast<std::int64_t>(1000 * step) + 50, 2));
    }
    for (int i = 0; i < 5; ++i) sums.close_finished();
    sums.waited({1100, 2200}, 3);
    expect(collected, sums, 1, 50);
  }
  {  // A lane was taken after it, another, with the first frame of its stream, before it.
    Collected collected;
    TrafficSums sums(0, collected.take());
    for (const std::uint64_t step : {1U, 2U, 3U, 4U})
      sums.add(gradient(step, static_cast<std::int64_t>(1000 * step), 1));
    sums.close_finished();
    sums.add(gradient(1, 1050, 2));
    expect(collected, sums, 1, 0);
  }
}

TEST(TrafficSums, ByStep) {
  Collected collected;
  TrafficSums sums(0, collected.take());
  for (const FrameRecord& each : {
           record(FrameKind::hello, true, 0, 0, 1000),      // It is no part of a step.
           record(FrameKind::weights, false, 0, 0, 1000),   // The first weights are not either.
           record(FrameKind::gradient, true, 0, 100, 200),  // Computing hides it.
           record(FrameKind::gradient, true, 0, 200, 300),  // The worker waits during half of it.
           record(FrameKind::weights, false, 1, 250, 400),  // It belongs to the round of step 0.
           record(FrameKind::gradient, true, 1, 1000, 1010, 7),
       })
    sums.add(each);
  sums.waited({0, 90}, 0);  // For the first weights: it counts to no step.
  sums.waited({250, 400}, 1);
  sums.waited({900, 1000}, 2);
  sums.close();
  ASSERT_EQ(collected.steps.size(), 2U);
  const StepTraffic &zero = collected.steps.at(0), &one = collected.steps.at(1);
  EXPECT_EQ(zero.sent, 200U);
  EXPECT_EQ(zero.received, 100U);
  EXPECT_EQ(zero.sending_ns, 200);
  EXPECT_EQ(zero.receiving_ns, 150);
  EXPECT_EQ(zero.wire_ns, 300);
  EXPECT_EQ(zero.exposed_ns, 150);
  EXPECT_EQ(zero.waited_ns, 150);
  EXPECT_EQ(one.sent, 7U);
  EXPECT_EQ(one.exposed_ns, 0);
  EXPECT_EQ(one.waited_ns, 100);
}

/// Peers are at different steps, one has stopped long ago, and the worker waits many times.
TEST(TrafficSums, TakeBoundedMemory) {
  TrafficSums sums(0, {});
  std::size_t most = 0;
  for (std::uint64_t step = 0; step < 100000; ++step) {
    const auto at = static_cast<std::int64_t>(1000 * step);
    const auto add = [&](std::uint64_t of, int peer) {
      for (int chunk = 0; chunk < 8; ++chunk) {
        const std::int64_t from = at + 100 * chunk;
        sums.add(record(FrameKind::gradient, false, of, from, from + 60, 100, peer));
        sums.add(record(FrameKind::weights, true, of + 1, from, from + 60, 100, peer));
      }
    };
    add(step, 1);
    if (step % 10 == 0) add(step / 10, 2);
    if (step < 50) add(step, 3);
    for (int i = 0; i < 4; ++i) sums.waited({at + 200 * i, at + 200 * i + 50}, step);
    sums.close_finished();
    most = std::max(most, sums.held());
  }
  EXPECT_LT(most, 1500000U);
  EXPECT_EQ(sums.summary(1).steps, TrafficSums::window + 3);  // With those that are open.
}

}  // namespace
}  // namespace duplex::net
