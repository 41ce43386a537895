// The ledgers of whole runs, with every frame and with those of some steps: what dist and simulate
// write, what report and compare make of it, and what is kept when a training goes on.
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "net/ledger/ledger_row.h"
#include "net/wire/frame.h"
#include "tests/tools/training_runs.h"
#include "tools/report/ledgers.h"
#include "tools/run_directory/row_file.h"

namespace duplex::tools::testing {
namespace {

using Words = std::vector<std::string>;

std::vector<net::StepTraffic> traffic_of(const std::string& directory, int rank) {
  return read_rows<net::StepTraffic>(directory + "/traffic-" + std::to_string(rank) + ".csv", true);
}
std::vector<net::LedgerRow> frames_of(const std::string& directory, int rank) {
  return read_rows<net::LedgerRow>(directory + "/ledger-" + std::to_string(rank) + ".csv", true);
}

/// Frames of weights and gradients by their step.
std::map<std::uint64_t, int> frames_by_step(const std::string& directory, int rank) {
  std::map<std::uint64_t, int> frames;
  for (const net::LedgerRow& row : frames_of(directory, rank))
    if (row.kind == "weights" || row.kind == "gradient") ++frames[row.step];
  return frames;
}

nlohmann::json json_of(const std::string& path) {
  return nlohmann::json::parse(read_text(path));
}

class Ledgers : public TrainingRuns {
 protected:
  static constexpr int batches = 13;

  /// A replay on two ranks; with a central server, of one worker. Returns what was said.
  std::string replay(const std::string& name, const Words& more) const {
    write_text(folder_ / "nodes", nodes_here(2));
    const Result result =
        run(plus({"launch", "--nodefile", folder_ / "nodes", "--", "--net", "lenet", "--device",
                  "replay:0.005", "--batch", "8", "--batches", std::to_string(batches), "--logdir",
                  folder_ / name, "--timeout", "20"},
                 more));
    EXPECT_EQ(result.exit, 0) << result.err;
    return result.err;
  }
  /// Returns the page that report makes of a run.
  std::string page_of(const std::string& name) const {
    const Result result = run({"report", folder_ / name});
    EXPECT_EQ(result.exit, 0) << result.err;
    return read_text(folder_ / (name + "/report.html"));
  }
};

TEST_F(Ledgers, HaveWholeStepsAndTheSumsOfAll) {
  for (const std::string server : {"distributed", "central"}) {
    const std::string all = server + "-all", some = server + "-some";
    const std::string quiet = replay(all, {"--server", server});
    EXPECT_EQ(quiet.find("the sums of all"), std::string::npos) << quiet;
    const std::string said = replay(some, {"--server", server, "--ledger", "sample:4"});
    EXPECT_NE(said.find("has the frames of some steps only (every 4th step)"), std::string::npos)
        << said;
    for (const int rank : {0, 1}) {
      SCOPED_TRACE(server + ", rank " + std::to_string(rank));
      auto every = frames_by_step(folder_ / all, rank),
           fourth = frames_by_step(folder_ / some, rank);
      EXPECT_EQ(every.size(), batches + 1U);  // The last weights are those of a step more.
      EXPECT_EQ(fourth.size(), 4U);
      for (const std::uint64_t step : {0, 4, 8, 12}) EXPECT_EQ(fourth[step], every[step]) << step;

      // The sums, from the frames and by the ledger.
      std::map<std::uint64_t, std::uint64_t> sent, received;
      std::uint64_t bytes_sent = 0;
      for (const net::LedgerRow& row : frames_of(folder_ / all, rank)) {
        if (row.sent) bytes_sent += row.bytes;
        if (row.kind != "weights" && row.kind != "gradient") continue;
        const std::uint64_t round = row.kind == "weights" ? row.step : row.step + 1;
        if (round > 0) (row.sent ? sent : received)[round - 1] += row.bytes;
      }
      const auto sums = traffic_of(folder_ / all, rank), others = traffic_of(folder_ / some, rank);
      ASSERT_EQ(sums.size(), static_cast<std::size_t>(batches));
      ASSERT_EQ(others.size(), static_cast<std::size_t>(batches));
      for (std::uint64_t step = 0; step < batches; ++step) {
        EXPECT_EQ(sums[step].step, step);
        EXPECT_EQ(sums[step].sent, sent[step]);
        EXPECT_EQ(sums[step].received, received[step]);
        EXPECT_GE(sums[step].wire_ns, std::max(sums[step].sending_ns, sums[step].receiving_ns));
        EXPECT_GE(sums[step].wire_ns, sums[step].exposed_ns);
        EXPECT_EQ(others[step].sent, sums[step].sent);
        EXPECT_EQ(others[step].received, sums[step].received);
      }
      const std::string file = "/rank-" + std::to_string(rank) + ".json";
      const auto whole = json_of(folder_ / (all + file)),
                 sampled = json_of(folder_ / (some + file));
      EXPECT_EQ(whole.at("traffic").at("bytes_sent"), bytes_sent);
      EXPECT_EQ(whole.at("traffic").at("steps"), batches - 1);
      EXPECT_EQ(whole.at("ledger").at("frames"), "all");
      EXPECT_EQ(sampled.at("ledger").at("frames"), "every 4th step");
      EXPECT_EQ(sampled.at("ledger").at("steps").at(0).at("every"), 4);
    }
    EXPECT_EQ(page_of(all).find("do not have the frames of all steps"), std::string::npos);
    const std::string page = page_of(some);
    EXPECT_NE(page.find("do not have the frames of all steps"), std::string::npos);
    EXPECT_NE(page.find("ranks 0, 1: every 4th step."), std::string::npos);
    for (const char* figure : {"Communication of the steps", "t_comm by tensor"})
      EXPECT_NE(page.find(figure), std::string::npos) << figure;
    const Result table = run({"compare", "tests/tools/recorded_run/local", folder_ / some});
    EXPECT_EQ(table.exit, 0) << table.err;
  }
}

TEST_F(Ledgers, MayHaveNoFramesAtAll) {
  const std::string said = replay("none", {"--ledger", "sums", "--sync", "none"});
  EXPECT_NE(said.find("ledger-1.csv has no frames"), std::string::npos) << said;
  EXPECT_TRUE(frames_of(folder_ / "none", 0).empty());
  std::set<std::uint64_t> steps;
  for (const net::StepTraffic& part : traffic_of(folder_ / "none", 0)) steps.insert(part.step);
  EXPECT_EQ(steps.size(), batches + 1U);  // With the last weights, which all workers get.
  const std::string page = page_of("none");
  EXPECT_NE(page.find("ranks 0, 1: none."), std::string::npos);
  EXPECT_NE(page.find("Communication of the steps"), std::string::npos);
  EXPECT_EQ(page.find("t_comm by tensor"), std::string::npos);

  // An interrupted run is reported as far as it came.
  for (const char* file : {"summary.json", "rank-0.json", "rank-1.json"})
    std::filesystem::remove(folder_ / ("none/" + std::string(file)));
  const std::string rows = read_text(folder_ / "none/traffic-0.csv");
  write_text(folder_ / "none/traffic-0.csv", rows.substr(0, rows.size() - 5));
  EXPECT_NE(page_of("none").find("Communication of the steps"), std::string::npos);
}

TEST_F(Ledgers, OfASimulationAreSampledToo) {
  const Result result =
      run({"simulate", "--net", "lenet", "--t-grad", "0.02", "--rate", "100Mbit/s", "--workers",
           "3", "--batches", "30", "--ledger", "sample:3", "--logdir", folder_ / "run"});
  ASSERT_EQ(result.exit, 0) << result.err;
  EXPECT_NE(result.err.find("every 3rd step"), std::string::npos) << result.err;
  std::set<std::uint64_t> steps;
  for (const auto& [step, frames] : frames_by_step(folder_ / "run", 1)) steps.insert(step);
  EXPECT_EQ(steps, (std::set<std::uint64_t>{0, 3, 6, 9}));
  EXPECT_EQ(traffic_of(folder_ / "run", 1).size(), 10U);
  EXPECT_EQ(json_of(folder_ / "run/summary.json").at("ledger").at("frames"), "every 3rd step");
  EXPECT_NE(page_of("run").find("ranks 0, 1, 2: every 3rd step."), std::string::npos);
}

/// Machines that share no folder leave each its own files; whoever copies them may leave some out.
TEST_F(Ledgers, ThatAreMissingAreNamed) {
  ASSERT_EQ(run({"simulate", "--net", "lenet", "--t-grad", "0.02", "--rate", "100Mbit/s",
                 "--workers", "4", "--batches", "12", "--logdir", folder_ / "run"})
                .exit,
            0);
  EXPECT_EQ(page_of("run").find("has no ledger of"), std::string::npos);
  for (const char* file : {"run/ledger-0.csv", "run/ledger-2.csv"})
    std::filesystem::remove(folder_ / file);
  const reports::Ledgers ledgers = reports::read_ledgers(folder_ / "run", 4);
  ASSERT_EQ(ledgers.size(), 2U);
  for (const int rank : {1, 3}) EXPECT_FALSE(ledgers.at(rank).empty()) << rank;
  const std::string page = page_of("run");
  EXPECT_NE(page.find("has no ledger of ranks 0, 2: "), std::string::npos);
  EXPECT_NE(page.find("t_comm by tensor"), std::string::npos);
}

TEST_F(Ledgers, OfAveragingsAreCalledSo) {
  for (Process& rank :
       start("run", 2, 6, {"--batches", "12", "--average", "2", "--ledger", "sample:4"}, true)) {
    const Result result = rank.wait();
    EXPECT_EQ(result.exit, 0) << result.err;
  }
  const std::string page = page_of("run");
  EXPECT_NE(page.find("do not have the frames of all averagings, each of which is a step here"),
            std::string::npos);
  EXPECT_NE(page.find("is of these averagings"), std::string::npos);
}

TEST_F(Ledgers, OfEarlierPartsAreSetAside) {
  const auto train = [&](const Words& more) {
    for (Process& rank : start("parts", 2, 6, plus({"--checkpoint-every", "4"}, more), true)) {
      const Result result = rank.wait();
      EXPECT_EQ(result.exit, 0) << result.err;
    }
  };
  train({"--batches", "4"});
  train({"--batches", "9", "--resume"});
  for (const int rank : {0, 1}) {
    const std::string path = folder_ / ("parts/traffic-" + std::to_string(rank));
    const auto before = read_rows<net::StepTraffic>(path + ".1.csv", true),
               after = read_rows<net::StepTraffic>(path + ".csv", true);
    ASSERT_EQ(before.size(), 4U);
    ASSERT_EQ(after.size(), 5U);
    for (std::uint64_t step = 0; step < 4; ++step) EXPECT_EQ(before[step].step, step);
    for (std::uint64_t step = 4; step < 9; ++step) {
      EXPECT_EQ(after[step - 4].step, step);
      EXPECT_EQ(after[step - 4].sent, before[0].sent);  // The initial weights do not count.
    }
    EXPECT_FALSE(frames_by_step(folder_ / "parts", rank).empty());
    EXPECT_TRUE(
        std::filesystem::exists(folder_ / ("parts/ledger-" + std::to_string(rank) + ".1.csv")));
  }
  EXPECT_NE(page_of("parts").find("Communication of the steps"), std::string::npos);
}

/// Rank 0 may write no file of more than 20 kB: the sums do not fit.
TEST_F(Ledgers, SumsThatCannotBeKeptCostNoTraining) {
  write_two_nodes();
  const auto rank = [&](const std::string& index) {
    std::string command = index == "0" ? "trap '' XFSZ; ulimit -f 20; " : "";
    command += "exec \"$DUPLEX\"";
    for (const std::string& word :
         {std::string("dist"), std::string("--net"), std::string("lenet"), std::string("--device"),
          std::string("replay:0.0005"), std::string("--batches"), std::string("1000"),
          std::string("--server=central"), std::string("--ledger=sums"), std::string("--logdir"),
          folder_ / "full", std::string("--nodefile"), folder_ / "nodes", std::string("--index"),
          index, std::string("--timeout"), std::string("20")})
      command += " '" + word + "'";
    return Process({"-c", command}, "/bin/bash");
  };
  Process first = rank("0"), second = rank("1");
  const Result full = first.wait(), other = second.wait();
  EXPECT_EQ(other.exit, 0) << other.err;
  EXPECT_EQ(full.exit, 1) << full.err;
  EXPECT_NE(full.err.find("traffic-0.csv is incomplete"), std::string::npos) << full.err;
  EXPECT_NE(full.err.find("trained to its end, but "), std::string::npos) << full.err;
}

TEST_F(Ledgers, ABadSampleIsNamed) {
  for (const std::string command : {"dist", "simulate"})
    for (const std::string bad :
         {"half", "sample", "sample:", "sample:0", "sample:-1", "sample:2x"}) {
      const Result result = run({command, "--net", "lenet", "--ledger", bad, "--workers", "2"});
      EXPECT_EQ(result.exit, 2) << result.err;
      EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
      EXPECT_NE(result.err.find("--ledger: '" + bad + "' is none of auto, all, sums and sample:K"),
                std::string::npos)
          << result.err;
    }
}

}  // namespace
}  // namespace duplex::tools::testing
