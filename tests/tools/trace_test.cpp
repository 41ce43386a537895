// Tests the trace of a run: the causes of waits, and the file that a viewer opens.
#include "tools/tracing/trace.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "tests/temporary_folder.h"
#include "tests/tools/training_runs.h"
#include "tools/report/trace_data.h"
#include "tools/tracing/critical_path.h"

namespace duplex::tools {
namespace {

using net::FrameKind;
using net::TraceEvent;
using Kind = TraceEvent::Kind;
using testing::Process;
using testing::Result;

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

/// A run of three ranks, the last of which computes five times as long.
class TracedRun : public ::testing::Test {
 protected:
  std::string run(const std::vector<std::string>& more) {
    std::string nodes, said;
    for (int port : testing::free_ports(3)) nodes += "127.0.0.1:" + std::to_string(port) + "\n";
    testing::write_text(folder_ / "nodes", nodes);
    std::vector<Process> ranks;
    for (int rank = 0; rank < 3; ++rank) {
      std::vector<std::string> arguments{"dist",
                                         "--net",
                                         "lenet",
                                         "--batches",
                                         "14",
                                         "--trace",
                                         "--trace-steps",
                                         "5",
                                         "--timeout",
                                         "20",
                                         "--nodefile",
                                         folder_ / "nodes",
                                         "--index",
                                         std::to_string(rank),
                                         "--logdir",
                                         folder_ / "run",
                                         "--device",
                                         rank == 2 ? "replay:0.05" : "replay:0.01"};
      arguments.insert(arguments.end(), more.begin(), more.end());
      ranks.emplace_back(arguments);
    }
    for (Process& rank : ranks) {
      const Result result = rank.wait();
      EXPECT_EQ(result.exit, 0) << result.err;
      said += result.out;
    }
    return said;
  }
  TemporaryFolder folder_;
};

using TracedTraining = testing::TrainingRuns;

TEST_F(TracedRun, NamesTheSlowRankAndOpensInAViewer) {
  const std::string said = run({});
  EXPECT_NE(said.find("a step: rank 2 computing"), std::string::npos) << said;

  std::ifstream file(folder_ / "run/trace.json");
  const nlohmann::json trace = nlohmann::json::parse(file);
  // End of the last event by row, since events of a row must not overlap.
  std::map<std::pair<int, int>, double> ends;
  std::map<std::pair<int, int>, std::string> names;
  std::map<int, std::set<std::string>> categories;  // By rank.
  std::map<int, std::vector<double>> arrows;
  std::set<std::uint64_t> steps;
  std::vector<nlohmann::json> slices;
  for (const nlohmann::json& each : trace.at("traceEvents")) {
    const std::string phase = each.at("ph");
    if (phase == "X") slices.push_back(each);
    if (phase == "s" || phase == "f") arrows[each.at("id")].push_back(each.at("ts"));
    if (each.value("name", "") == "thread_name")
      names[{each.at("pid"), each.at("tid")}] = each.at("args").at("name");
  }
  std::sort(slices.begin(), slices.end(), [](const auto& a, const auto& b) {
    return a.at("ts").template get<double>() < b.at("ts").template get<double>();
  });
  for (const nlohmann::json& slice : slices) {
    const std::pair<int, int> row{slice.at("pid"), slice.at("tid")};
    EXPECT_EQ(names.count(row), 1U);
    EXPECT_GE(slice.at("ts").get<double>(), ends[row] - 1e-3) << slice;
    ends[row] = slice.at("ts").get<double>() + slice.at("dur").get<double>();
    categories[row.first].insert(slice.at("cat").get<std::string>());
    if (slice.at("cat") == "forward") steps.insert(slice.at("args").at("step").get<int>());
  }
  EXPECT_EQ(steps, (std::set<std::uint64_t>{9, 10, 11, 12, 13}));
  for (int rank : {0, 1, 2}) {
    for (const char* category : {"forward", "backward", "weights", "gradient", "server"})
      EXPECT_EQ(categories[rank].count(category), 1U) << rank << category;
  }
  EXPECT_EQ(categories[0].count("wait"), 1U);
  std::size_t joined = 0;
  for (const auto& [id, times] : arrows) joined += times.size() == 2;
  EXPECT_GT(joined, arrows.size() * 9 / 10);  // At the window's edge one end may be missing.
}

/// The last stage of a pipeline is the slow one. What crosses and what is waited for has its name,
/// in a simulated run as well.
TEST_F(TracedRun, OfACutNetworkHasMaps) {
  const std::vector<std::string> cut{"--strategy", "pipeline", "--micro-batches", "4"};
  const std::string said = run(cut);
  EXPECT_NE(said.find("waiting  rank 0"), std::string::npos) << said;
  EXPECT_NE(said.find("rank 2 computing"), std::string::npos) << said;
  const Result simulated = testing::run(testing::plus(
      {"simulate", "--net", "lenet", "--t-grad", "0.01", "--rate", "1Gbit/s", "--workers", "3",
       "--batches", "42", "--slow", "2:5", "--trace", "--logdir", folder_ / "simulated"},
      cut));
  ASSERT_EQ(simulated.exit, 0) << simulated.err;
  EXPECT_NE(simulated.out.find("rank 2 computing"), std::string::npos) << simulated.out;
  for (const char* name : {"run", "simulated"}) {
    std::ifstream file(folder_ / (std::string(name) + "/trace.json"));
    const nlohmann::json trace = nlohmann::json::parse(file);
    std::map<std::string, std::set<std::string>> names;  // By category.
    for (const nlohmann::json& each : trace.at("traceEvents"))
      if (each.at("ph") == "X") names[each.at("cat")].insert(each.at("name"));
    EXPECT_EQ(names["map"].count("map pool2 [0]"), 1U) << name;
    EXPECT_EQ(names["map gradient"].count("map-gradient pool2 [0]"), 1U) << name;
    EXPECT_EQ(names["wait"].count("waits for maps"), 1U) << name;
    EXPECT_EQ(names["forward"].count("fc1"), 1U) << name;
    EXPECT_EQ(names["server"].count("updates conv1.weight"), 1U) << name;
  }
  const Result report =
      testing::run({"report", folder_ / "run", "--output", folder_ / "page.html"});
  ASSERT_EQ(report.exit, 0) << report.err;
  EXPECT_NE(testing::read_text(folder_ / "page.html").find("gradients of maps"), std::string::npos);
}

/// An averaging is a step, with all steps that are computed before it.
TEST_F(TracedTraining, CountsAveragings) {
  const std::vector<std::string> average{"--average", "3", "--trace", "--trace-steps", "5"};
  for (Process& rank : start("run", 3, 4, testing::plus(average, {"--batches", "14"}))) {
    const Result result = rank.wait();
    EXPECT_EQ(result.exit, 0) << result.err;
    EXPECT_EQ(result.out.find(" a step: "), std::string::npos) << result.out;
  }
  const Result simulated = testing::run(
      testing::plus({"simulate", "--net", "lenet", "--t-grad", "0.01", "--rate", "1Gbit/s",
                     "--workers", "3", "--server", "distributed", "--batches", "42", "--slow",
                     "2:5", "--logdir", folder_ / "simulated"},
                    average));
  ASSERT_EQ(simulated.exit, 0) << simulated.err;
  EXPECT_NE(simulated.out.find("an averaging: rank 2 computing"), std::string::npos)
      << simulated.out;
  // There are 14 steps.
  for (const char* name : {"run", "simulated"}) {
    std::ifstream file(folder_ / (std::string(name) + "/trace.json"));
    const nlohmann::json trace = nlohmann::json::parse(file);
    std::map<int, int> computed, updated;  // By averaging.
    for (const nlohmann::json& each : trace.at("traceEvents")) {
      if (each.at("ph") != "X" || each.at("pid") != 0) continue;
      if (each.at("name") == "conv1" && each.at("cat") == "backward")
        ++computed[each.at("args").at("step")];
      if (each.at("cat") == "server") ++updated[each.at("args").at("step")];
    }
    EXPECT_EQ(computed, (std::map<int, int>{{0, 3}, {1, 3}, {2, 3}, {3, 3}, {4, 2}})) << name;
    EXPECT_EQ(updated.size(), 5U) << name;
    EXPECT_EQ(updated.rbegin()->first, 4) << name;
  }
  const Result report =
      testing::run({"report", folder_ / "run", "--output", folder_ / "page.html"});
  ASSERT_EQ(report.exit, 0) << report.err;
  const std::string page = testing::read_text(folder_ / "page.html");
  for (const char* text :
       {"waited ms an averaging", "wire ms an averaging", "Communication of the averagings",
        "weights to a worker, an averaging", ">MB an averaging<", ">ms an averaging<",
        "The last averagings of all ranks", "conv1, backward, averaging 4"})
    EXPECT_NE(page.find(text), std::string::npos) << text;
  for (const char* text : {" ms a step<", "MB a step", "Communication of the steps", ", step 4"})
    EXPECT_EQ(page.find(text), std::string::npos) << text;
}

/// The last weights of an asynchronous run come when all have ended, and are for the step behind
/// the next, which moves the window of nothing else.
TEST_F(TracedRun, OfAnAsynchronousRunHasOneWindow) {
  using Steps = std::set<int>;
  for (const std::string server : {"central", "distributed"}) {
    std::filesystem::remove_all(folder_ / "run");
    std::filesystem::remove_all(folder_ / "simulated");
    const std::string said = run({"--server", server, "--sync", "none"});
    EXPECT_NE(said.find("trace.json, clocks within"), std::string::npos) << said;
    // The same steps: 14 of each worker.
    const Result simulated = testing::run({"simulate",
                                           "--net",
                                           "lenet",
                                           "--t-grad",
                                           "0.01",
                                           "--rate",
                                           "1Gbit/s",
                                           "--workers",
                                           server == "central" ? "2" : "3",
                                           "--batches",
                                           server == "central" ? "28" : "42",
                                           "--server",
                                           server,
                                           "--sync",
                                           "none",
                                           "--trace",
                                           "--trace-steps",
                                           "5",
                                           "--logdir",
                                           folder_ / "simulated"});
    ASSERT_EQ(simulated.exit, 0) << simulated.err;
    for (const std::string name : {"run", "simulated"}) {
      std::map<std::pair<int, std::string>, Steps> steps;  // By rank and category.
      const reports::TraceData trace = reports::read_trace(folder_ / (name + "/trace.json"));
      for (const reports::TraceSpan& span : trace.spans)
        steps[{span.rank, span.category}].insert(static_cast<int>(span.step));
      for (int rank = 0; rank < 3; ++rank) {
        SCOPED_TRACE(server + " " + name + " " + std::to_string(rank));
        const bool computes = rank > 0 || server == "distributed";
        const bool owns = rank == 0 || server == "distributed";
        for (const char* category : {"forward", "backward", "gradient", "server"}) {
          const bool is_there = std::string(category) == "gradient" ||
                                (std::string(category) == "server" ? owns : computes);
          EXPECT_EQ((steps[{rank, category}]), is_there ? (Steps{9, 10, 11, 12, 13}) : Steps{})
              << category;
        }
        EXPECT_EQ((steps[{rank, "weights"}]), (Steps{10, 11, 12, 13, 14, 15}));
        const Steps& waits = steps[{rank, "wait"}];
        if (!waits.empty()) {
          EXPECT_GE(*waits.begin(), 9);
          EXPECT_LE(*waits.rbegin(), 15);
        }
        EXPECT_EQ(waits.empty(), !computes);
      }
      // A page shows the last three.
      Steps shown;
      for (const reports::TraceSpan& span : trace.last(3).spans)
        if (span.category == "backward") shown.insert(static_cast<int>(span.step));
      EXPECT_EQ(shown, (Steps{11, 12, 13}));
    }
  }
}

}  // namespace
}  // namespace duplex::tools
