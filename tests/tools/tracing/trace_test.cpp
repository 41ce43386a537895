// Tests the events of a trace: the causes of waits, and the steps that are kept.
#include "tools/tracing/trace.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "tools/tracing/critical_path.h"

namespace duplex::tools {
namespace {

using net::FrameKind;
using net::TraceEvent;
using Kind = TraceEvent::Kind;

TraceEvent event(Kind kind, std::uint64_t step, std::int64_t from, std::int64_t to) {
  TraceEvent event;
  event.kind = kind;
  event.step = step;
  event.from = from;
  event.to = to;
  return event;
}
TraceEvent frame(Kind kind, FrameKind what, int peer, std::uint64_t step, std::int64_t from,
                 std::int64_t to, std::int64_t queued = 0) {
  TraceEvent result = event(kind, step, from, to);
  result.frame = what;
  result.peer = peer;
  result.queued = queued;
  return result;
}

std::int64_t part(const WaitCauses& causes, Cause::Kind kind, int rank, int to = -1) {
  const auto found = causes.find({kind, rank, to});
  return found == causes.end() ? 0 : found->second;
}

/// Rank 0 owns a chunk. Its own gradient of step 4 is there at 200. Rank 1's is later: it is
/// computed at 500, waits behind others until 530, and is on its way until 600. It is added at 600,
/// and the update runs from 620 to 650. Rank 2 gets the weights: they are queued at 655, sent at
/// 700, and there at 760.
std::vector<std::vector<TraceEvent>> one_chunk() {
  std::vector<std::vector<TraceEvent>> ranks(3);
  ranks[1].push_back(frame(Kind::sent, FrameKind::gradient, 0, 4, 530, 560, 500));
  ranks[2].push_back(frame(Kind::sent, FrameKind::gradient, 0, 4, 100, 110, 100));
  ranks[0] = {
      event(Kind::pushed, 4, 200, 200), frame(Kind::received, FrameKind::gradient, 1, 4, 580, 600),
      frame(Kind::received, FrameKind::gradient, 2, 4, 120, 130), event(Kind::update, 4, 620, 650),
      frame(Kind::sent, FrameKind::weights, 2, 5, 700, 720, 655)};
  ranks[2].push_back(frame(Kind::received, FrameKind::weights, 0, 5, 750, 760));
  return ranks;
}

WaitCauses causes_of(const std::vector<std::vector<TraceEvent>>& ranks, int rank,
                     const TraceEvent& wait) {
  return CriticalPath({&ranks[0], &ranks[1], &ranks[2]}).of(rank, wait);
}

TEST(CriticalPath, FollowsTheChunkThatCameLastBack) {
  const auto ranks = one_chunk();
  const WaitCauses causes = causes_of(ranks, 2, event(Kind::wait, 5, 300, 760));
  EXPECT_EQ(part(causes, Cause::wire, 0, 2), 60);
  EXPECT_EQ(part(causes, Cause::queue, 0, 2), 45);
  EXPECT_EQ(part(causes, Cause::server, 0), 55);
  EXPECT_EQ(part(causes, Cause::wire, 1, 0), 70);
  EXPECT_EQ(part(causes, Cause::queue, 1, 0), 30);
  EXPECT_EQ(part(causes, Cause::computing, 1), 200);
  std::int64_t sum = 0;
  for (const auto& [cause, time] : causes) sum += time;
  EXPECT_EQ(sum, 460);
  EXPECT_EQ(text_of(causes, 1), "rank 1 computing 0.200 us");
}

TEST(CriticalPath, OnlyAsFarAsTheWaitReaches) {
  const auto ranks = one_chunk();
  EXPECT_EQ(causes_of(ranks, 2, event(Kind::wait, 5, 740, 760)),
            (WaitCauses{{{Cause::wire, 0, 2}, 20}}));
  // The owner's own worker waits only for the update.
  const WaitCauses own = causes_of(ranks, 0, event(Kind::wait, 5, 590, 650));
  EXPECT_EQ(own, (WaitCauses{{{Cause::wire, 1, 0}, 10}, {{Cause::server, 0, -1}, 50}}));
}

TEST(CriticalPath, TheOwnersWorkerMayBeTheLast) {
  auto ranks = one_chunk();
  ranks[0][0].from = ranks[0][0].to = 610;
  const WaitCauses causes = causes_of(ranks, 2, event(Kind::wait, 5, 300, 760));
  EXPECT_EQ(part(causes, Cause::computing, 0), 310);
  EXPECT_EQ(part(causes, Cause::computing, 1), 0);
}

TEST(CriticalPath, AnAsynchronousWorkerWaitsForItsOwnGradient) {
  auto ranks = one_chunk();
  for (TraceEvent& each : ranks[0]) {
    if (each.kind == Kind::update) each.peer = 2;
  }
  const WaitCauses causes = causes_of(ranks, 2, event(Kind::wait, 5, 90, 760));
  EXPECT_EQ(part(causes, Cause::wire, 2, 0), 30);
  EXPECT_EQ(part(causes, Cause::server, 0), 525);
  EXPECT_EQ(part(causes, Cause::computing, 2), 10);
}

/// Rank 0 waits from 100 to 300 for maps. The last one that came by then is rank 1's gradient of
/// one, which that handed over at 200, and which left at 230.
TEST(CriticalPath, FollowsMapsToWhoSentThem) {
  std::vector<std::vector<TraceEvent>> ranks(3);
  ranks[1] = {frame(Kind::sent, FrameKind::map_gradient, 0, 4, 230, 260, 200)};
  ranks[2] = {frame(Kind::sent, FrameKind::map, 0, 4, 110, 120, 105)};
  ranks[0] = {frame(Kind::received, FrameKind::map_gradient, 1, 4, 270, 300),
              frame(Kind::received, FrameKind::map, 2, 4, 130, 140)};
  TraceEvent wait = event(Kind::wait, 4, 100, 300);
  wait.frame = FrameKind::map;
  EXPECT_EQ(causes_of(ranks, 0, wait), (WaitCauses{{{Cause::wire, 1, 0}, 70},
                                                   {{Cause::queue, 1, 0}, 30},
                                                   {{Cause::computing, 1, -1}, 100}}));
  EXPECT_EQ(causes_of(ranks, 1, wait), (WaitCauses{{{}, 200}}));
}

TEST(CriticalPath, SaysWhereTheTraceEnds) {
  const std::vector<std::vector<TraceEvent>> none(3);
  EXPECT_EQ(causes_of(none, 1, event(Kind::wait, 5, 0, 10)), (WaitCauses{{{}, 10}}));
}

TEST(Trace, ComesBackAsItWasSentOrIsRefused) {
  RankTrace trace;
  trace.name = "rank 1 on \"lab\"";
  trace.clock_error_ns = 1234;
  trace.events = one_chunk()[0];
  const std::string bytes = encode(trace);
  const RankTrace back = decode_rank_trace(bytes);
  EXPECT_EQ(back.name, trace.name);
  EXPECT_EQ(back.clock_error_ns, 1234);
  ASSERT_EQ(back.events.size(), trace.events.size());
  EXPECT_EQ(encode(back), bytes);
  for (std::size_t size : {std::size_t{0}, std::size_t{5}, bytes.find('\n') + 3, bytes.size() - 1})
    EXPECT_THROW(decode_rank_trace(bytes.substr(0, size)), net::ProtocolError) << size;
  EXPECT_THROW(decode_rank_trace(bytes + "x"), net::ProtocolError);
  std::string wrong = bytes;
  wrong[bytes.find('\n') + 9] = 99;  // It is the first event's kind.
  EXPECT_THROW(decode_rank_trace(wrong), net::ProtocolError);
}

/// The wait for the weights that the last step makes belongs to it. One step more is there.
TEST(Trace, KeepsTheLastSteps) {
  net::TraceWindow window(3);
  for (std::uint64_t step = 0; step < 1000; ++step) window.add(event(Kind::update, step, 0, 1));
  window.add(event(Kind::wait, 1000, 0, 1));
  std::vector<std::uint64_t> steps;
  for (const TraceEvent& each : window.events()) steps.push_back(each.step);
  EXPECT_EQ(steps, (std::vector<std::uint64_t>{996, 997, 998, 999, 1000}));
}

/// A worker that comes after the fastest one by more than a window has none of it kept.
TEST(Trace, KeepsNothingThatIsTooOld) {
  net::TraceWindow window(3);
  for (std::uint64_t step = 0; step < 100; ++step) window.add(event(Kind::update, step, 0, 1));
  const std::size_t kept = window.events().size();
  for (std::uint64_t step = 0; step < 90; ++step) window.add(event(Kind::update, step, 2, 3));
  EXPECT_EQ(window.events().size(), kept);
}

/// Rank 0 computes nothing. Rank 1 computes 10 steps, and rank 2, which trained for another, 12;
/// each gets its last weights, which are for no step.
TEST(Trace, ShowsTheSameStepsOfEverySource) {
  std::vector<RankTrace> ranks(3);
  for (const int rank : {1, 2}) {
    const std::uint64_t steps = rank == 1 ? 10 : 12;
    std::vector<TraceEvent>& own = ranks[static_cast<std::size_t>(rank)].events;
    for (std::uint64_t step = 0; step <= steps + 1; ++step) {
      own.push_back(event(Kind::wait, step, 0, 1));
      own.push_back(frame(Kind::received, FrameKind::weights, 0, step, 0, 1));
      if (step >= steps) continue;
      own.push_back(event(Kind::backward, step, 1, 2));
      own.push_back(frame(Kind::sent, FrameKind::gradient, 0, step, 2, 3));
      ranks[0].events.push_back(event(Kind::update, step, 3, 4));
    }
  }
  keep_last_steps(ranks, 4);
  const auto steps_of = [&](std::size_t rank, Kind kind) {
    std::set<std::uint64_t> steps;
    for (const TraceEvent& each : ranks[rank].events)
      if (each.kind == kind) steps.insert(each.step);
    return steps;
  };
  using Steps = std::set<std::uint64_t>;
  for (const Kind kind : {Kind::backward, Kind::sent}) {
    EXPECT_EQ(steps_of(1, kind), (Steps{6, 7, 8, 9}));
    EXPECT_EQ(steps_of(2, kind), (Steps{8, 9, 10, 11}));
  }
  EXPECT_EQ(steps_of(1, Kind::wait), (Steps{6, 7, 8, 9, 10, 11}));
  EXPECT_EQ(steps_of(1, Kind::received), (Steps{7, 8, 9, 10, 11}));
  EXPECT_EQ(steps_of(0, Kind::update), (Steps{8, 9, 10, 11}));
}

}  // namespace
}  // namespace duplex::tools
