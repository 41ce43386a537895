// Tests the trace that a run writes: the file that a viewer opens, and the steps that it shows.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "tests/temporary_folder.h"
#include "tests/tools/training_runs.h"
#include "tools/report/trace_data.h"

namespace duplex::tools {
namespace {

using testing::Process;
using testing::Result;

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

/// The page draws the network with the ranks that compute each layer, and says what crosses.
TEST_F(TracedRun, OfEveryStrategyIsReported) {
  for (const char* strategy : {"owt", "filter", "hybrid", "hypergraph", "pipeline"}) {
    const std::string logdir = folder_ / strategy, page = folder_ / "page.html";
    const Result simulated = testing::run({"simulate", "--net", "lenet", "--t-grad", "0.01",
                                           "--rate", "1Gbit/s", "--workers", "3", "--batches", "12",
                                           "--strategy", strategy, "--logdir", logdir});
    ASSERT_EQ(simulated.exit, 0) << strategy << simulated.err;
    const Result report = testing::run({"report", logdir, "--output", page});
    ASSERT_EQ(report.exit, 0) << strategy << report.err;
    const std::string text = testing::read_text(page);
    EXPECT_NE(text.find("What crosses where the network is cut"), std::string::npos) << strategy;
    EXPECT_NE(text.find("rank 2"), std::string::npos) << strategy;
    EXPECT_NE(text.find(", cut by " + std::string(strategy)), std::string::npos) << strategy;
  }
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
