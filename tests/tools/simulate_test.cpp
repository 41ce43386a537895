// Tests duplex simulate as a user runs it: beside dist, and with wrong flags.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/temporary_folder.h"
#include "tests/tools/program.h"

namespace duplex::tools {
namespace {

using testing::plus;
using testing::read_text;
using testing::Result;
using testing::run;
using testing::write_text;
using Words = std::vector<std::string>;

/// Returns the frames of weights, gradients and maps in a ledger, as "sent,1,weights,0,3,0,2048,0".
/// They have no times, and their order does not depend on times. Without `sizes` they have no
/// bytes.
Words frames_of(const std::string& directory, int rank, bool sizes) {
  std::ifstream file(directory + "/ledger-" + std::to_string(rank) + ".csv");
  Words frames;
  std::string line;
  std::getline(file, line);
  EXPECT_EQ(line,
            "rank,direction,peer,kind,step,parameter,chunk,bytes,queued_ns,first_ns,last_ns,"
            "bytes_saved");
  while (std::getline(file, line)) {
    if (line.find(",weights,") == std::string::npos &&
        line.find(",gradient,") == std::string::npos && line.find(",map") == std::string::npos)
      continue;
    std::size_t end = line.find(',');
    for (int field = 0; field < (sizes ? 7 : 6); ++field) end = line.find(',', end + 1);
    frames.push_back(line.substr(0, end) + (sizes ? line.substr(line.rfind(',')) : ""));
  }
  std::sort(frames.begin(), frames.end());
  return frames;
}

nlohmann::json json_of(const std::string& path) {
  return nlohmann::json::parse(read_text(path));
}

/// Every rank of a simulated run has to send and receive the same frames as in a real run.
TEST(SimulateCommand, MovesTheFramesOfDist) {
  struct Case {
    int ranks, workers;
    Words flags;
  };
  const std::vector<Case> cases{
      {3, 3, {"--sync", "join", "--shards", "even"}},
      {3, 3, {"--sync", "join", "--shards", "tensors", "--overlap", "off"}},
      {3, 3, {"--sync", "none", "--overlap", "off"}},
      {3, 2, {"--sync", "split", "--server", "central", "--semaphore", "on"}},
      {4, 3, {"--sync", "none", "--server", "central"}},
      {3, 3, {"--sync", "join", "--wire", "bf16"}},
      {3, 2, {"--sync", "none", "--server", "central", "--wire", "weights:fp16"}},
      {3, 3, {"--sync", "join", "--factors", "on"}},
      {3, 3, {"--sync", "split", "--factors", "auto", "--share", "3:2:1"}},
      {3, 3, {"--sync", "join", "--wire", "lossless"}},
      {3, 2, {"--sync", "none", "--server", "central", "--wire", "lossless"}},
      {3, 3, {"--sync", "split", "--factors", "on", "--wire", "lossless"}},
      {3, 3, {"--sync", "join", "--slots", "2"}},
      {3, 2, {"--sync", "split", "--server", "central", "--slots", "4"}},
      {3, 3, {"--strategy", "pipeline", "--micro-batches", "4", "--in-flight", "1"}},
      {3, 3, {"--strategy", "pipeline", "--stages", "2:1", "--micro-batches", "2"}},
      {3, 3, {"--strategy", "pipeline", "--stages", "2:1@conv2+0.5", "--wire", "lossless"}},
      {4, 4, {"--strategy", "owt", "--micro-batches", "2", "--wire", "bf16"}},
      {4, 4, {"--strategy", "hybrid", "--sync", "split"}},
      {4, 4, {"--strategy", "pipeline", "--stages", "2", "--server", "central"}},
      {3,
       3,
       {"--strategy", "pipeline", "--stages", "1:2", "--micro-batches", "2", "--factors", "on"}},
      {3, 3, {"--strategy", "hypergraph"}},
      {3, 3, {"--strategy", "owt", "--share", "1:2:1"}},
  };
  for (const Case& each : cases) {
    const TemporaryFolder folder;
    write_text(folder / "nodes", testing::nodes_here(each.ranks));
    const Result real =
        run(plus({"launch", "--nodefile", folder / "nodes", "--", "--net", "lenet", "--device",
                  "replay:0.01", "--batches", "4", "--logdir", folder / "real", "--timeout", "30"},
                 each.flags));
    ASSERT_EQ(real.exit, 0) << real.err;
    const bool split = std::find(each.flags.begin(), each.flags.end(), "split") != each.flags.end();
    const bool with_slots = each.flags[each.flags.size() - 2] == "--slots";
    const int slots = with_slots ? std::stoi(each.flags.back()) : 1;
    const Result simulated = run(plus(
        {"simulate", "--net", "lenet", "--t-grad", "0.01", "--rate", "10Gbit/s", "--workers",
         std::to_string(each.workers), "--batches",
         std::to_string(split ? 4 : 4 * each.workers * slots), "--logdir", folder / "simulated"},
        each.flags));
    ASSERT_EQ(simulated.exit, 0) << simulated.err;
    // The bytes of a packed frame depend on its values.
    const bool sizes = each.flags.back() != "lossless";
    for (int rank = 0; rank < each.ranks; ++rank) {
      const Words expected = frames_of(folder / "real", rank, sizes);
      EXPECT_GT(expected.size(), 20U);
      EXPECT_EQ(frames_of(folder / "simulated", rank, sizes), expected)
          << "rank " << rank << ", " << each.flags[1];
    }
  }
}

TEST(SimulateCommand, LeavesARunDirectory) {
  const TemporaryFolder folder;
  const Result result =
      run({"simulate", "--net", "lenet", "--t-grad", "0.02", "--rate", "100Mbit/s", "--workers",
           "3", "--batches", "30", "--trace", "--logdir", folder / "run", "--records", "2"});
  ASSERT_EQ(result.exit, 0) << result.err;
  EXPECT_NE(result.out.find("speedup"), std::string::npos);
  EXPECT_EQ(json_of(folder / "run/config.json").at("command"), "simulate");
  const auto summary = json_of(folder / "run/summary.json");
  EXPECT_EQ(summary.at("steps"), 10);
  EXPECT_NEAR(summary.at("t_grad_s").at("median").get<double>(), 0.02, 1e-9);
  EXPECT_GT(summary.at("traffic").at("t_comm_s").get<double>(), 0.0);
  EXPECT_TRUE(std::filesystem::exists(folder / "run/ledger-1.csv"));
  EXPECT_FALSE(std::filesystem::exists(folder / "run/ledger-2.csv"));
  std::istringstream metrics(read_text(folder / "run/metrics.csv"));
  std::string line;
  int rows = -1;
  while (std::getline(metrics, line)) ++rows;
  EXPECT_EQ(rows, 10);
  int computed = 0, sent = 0;
  const nlohmann::json trace = json_of(folder / "run/trace.json");
  for (const auto& event : trace.at("traceEvents")) {
    computed += event.value("cat", "") == "backward" ? 1 : 0;
    sent += event.value("cat", "") == "gradient" ? 1 : 0;
  }
  EXPECT_GT(computed, 20);
  EXPECT_GT(sent, 20);
}

/// Returns the output of `simulate` without the time that it took.
std::string told(const Words& flags) {
  const Result result = run(plus({"simulate", "--net", "lenet", "--t-grad", "0.02", "--rate",
                                  "100Mbit/s", "--workers", "4", "--batches", "40"},
                                 flags));
  EXPECT_EQ(result.exit, 0) << result.err;
  return result.out.substr(0, result.out.find("took"));
}

TEST(SimulateCommand, GivesTheSameForTheSameSeed) {
  const Words slow{"--slow", "all:lognormal:0.3", "--sync", "none"};
  EXPECT_EQ(told(slow), told(slow));
  EXPECT_NE(told(slow), told(plus(slow, {"--seed", "2"})));
}

/// The ledgers have only virtual times, also those of a run with turns.
TEST(SimulateCommand, WritesTheSameLedgersAgain) {
  const TemporaryFolder folder;
  for (const char* name : {"a", "b"})
    told({"--semaphore", "on", "--server", "central", "--logdir", folder / name});
  for (const char* file : {"/ledger-0.csv", "/ledger-2.csv"}) {
    const std::string once = read_text(folder / "a" + file);
    EXPECT_NE(once.find(",ask,"), std::string::npos);
    EXPECT_EQ(read_text(folder / "b" + file), once);
  }
}

TEST(SimulateCommand, SaysWhatALostRankCosts) {
  EXPECT_NE(told({"--lose", "2:0.1"}).find("rank 2 is lost after 100.0 ms, which ends the run"),
            std::string::npos);
  EXPECT_NE(told({"--lose", "2:0.1", "--sync", "none", "--server", "central"})
                .find("lost     rank 2; the others went on"),
            std::string::npos);
  EXPECT_NE(
      told({"--lose", "0:0.1", "--sync", "none", "--server", "central"}).find("rank 0 is lost"),
      std::string::npos);
}

TEST(SimulateCommand, TakesWhatRunsHaveMeasured) {
  const TemporaryFolder folder;
  std::filesystem::create_directories(folder / "link");
  write_text(folder / "link/transport-ps.json",
             R"({"version": 1, "command": "transport", "title": "LeNet", "t_comm": 0.25,)"
             R"( "owner_bytes_per_s": 5e9})");
  const Result result =
      run({"simulate", "--net", "lenet", "--t-grad", "0.5", "--from", folder / "link", "--workers",
           "2", "--overlap", "off", "--latency", "0"});
  ASSERT_EQ(result.exit, 0) << result.err;
  EXPECT_NE(result.err.find("t_comm 250.0 ms from"), std::string::npos) << result.err;
  EXPECT_NE(result.err.find("owners' 5.00 GB/s from"), std::string::npos) << result.err;
  // By (4.12) it is 2 * 0.25 / 2 + 0.5, but for the shares' last elements.
  EXPECT_NE(result.out.find("speedup  1.33"), std::string::npos) << result.out;
}

TEST(SimulateCommand, TakesTheBatchThatItsTimesAreOf) {
  const TemporaryFolder folder;
  const std::string recorded = "tests/tools/recorded_run/local";
  const Words split{"simulate",  "--net", "lenet",  "--rate", "1Gbit/s",
                    "--workers", "3",     "--sync", "split"};
  for (const Words& times :
       {Words{"--from", recorded}, {"--profile", recorded + "/profile.json"}}) {
    const Result result = run(plus(plus(split, times), {"--logdir", folder / times[0]}));
    ASSERT_EQ(result.exit, 0) << result.err;
    EXPECT_NE(result.err.find("a batch of 8 is no multiple of 3"), std::string::npos) << result.err;
    EXPECT_EQ(json_of(folder / (times[0] + "/config.json"))["batch"], 8);
    const Result other = run(plus(plus(split, times), {"--batch", "16"}));
    EXPECT_EQ(other.exit, 1);
    EXPECT_NE(other.err.find("is of batches of 8, not of 16"), std::string::npos) << other.err;
  }
}

/// The network of a run with other classes has other bytes.
TEST(SimulateCommand, TakesTheNetworkOfTheRun) {
  const TemporaryFolder folder;
  nlohmann::json config = json_of("tests/tools/recorded_run/local/config.json");
  config["classes"] = 4;
  std::filesystem::create_directories(folder / "run");
  write_text(folder / "run/config.json", config.dump());
  std::filesystem::copy("tests/tools/recorded_run/local/summary.json", folder / "run");
  const Words link{"--rate", "1Gbit/s", "--workers", "2", "--from", folder / "run"};
  const Result result = run(plus({"simulate", "--logdir", folder / "out"}, link));
  ASSERT_EQ(result.exit, 0) << result.err;
  EXPECT_EQ(json_of(folder / "out/config.json")["network"], "lenet");
  EXPECT_EQ(json_of(folder / "out/config.json")["classes"], 4);
  const Result estimate = run(plus({"estimate"}, link));
  ASSERT_EQ(estimate.exit, 0) << estimate.err;
  // 6 classes of 500 weights and a bias fewer than 431,080 parameters.
  EXPECT_NE(estimate.err.find("LeNet: 1.712 MB over"), std::string::npos) << estimate.err;
  EXPECT_EQ(run(plus({"simulate", "--classes", "7", "--logdir", folder / "seven"}, link)).exit, 0);
  EXPECT_EQ(json_of(folder / "seven/config.json")["classes"], 7);
}

/// A profile that was written before profiles told their batch stands for any.
TEST(SimulateCommand, TakesAnOldProfileWithoutABatch) {
  const TemporaryFolder folder;
  nlohmann::json profile = json_of("tests/tools/recorded_run/local/profile.json");
  profile.erase("batch");
  write_text(folder / "profile.json", profile.dump());
  const Result result = run({"simulate", "--net", "lenet", "--profile", folder / "profile.json",
                             "--rate", "1Gbit/s", "--workers", "2", "--batch", "16"});
  EXPECT_EQ(result.exit, 0) << result.err;
}

/// Worker 0 takes twice as long for an image. With two batches in a step it has 2/3 of one, and the
/// other has 4/3.
TEST(SimulateCommand, SharesBySpeedEvenOutAStraggler) {
  const TemporaryFolder folder;
  const Words slow{"simulate",  "--net", "lenet",   "--t-grad", "1",      "--rate", "1000Gbit/s",
                   "--workers", "2",     "--batch", "300",      "--slow", "0:2"};
  const auto speedup = [&](const Words& more) {
    const Result result = run(plus(slow, more));
    EXPECT_EQ(result.exit, 0) << result.err;
    return std::stod(result.out.substr(result.out.find("speedup  ") + 9));
  };
  EXPECT_NEAR(speedup({}), 1.0, 0.02);
  EXPECT_NEAR(speedup({"--share", "1:2", "--logdir", folder / "run"}), 1.5, 0.02);
  EXPECT_EQ(json_of(folder / "run/config.json")["samples"], nlohmann::json::array({200, 400}));
  EXPECT_NEAR(speedup({"--share", "1:2", "--sync", "split"}), 1.5, 0.02);
  EXPECT_NEAR(speedup({"--share", "speeds"}), 1.5, 0.02);
  EXPECT_NEAR(speedup({"--share", "auto", "--slow", "1:2"}), 0.5 * 2, 0.02);
}

TEST(SimulateCommand, PrintsSpeedupsOfAllNumbersOfWorkers) {
  const Result result = run({"simulate", "--net", "lenet", "--t-grad", "0.02", "--rate",
                             "100Mbit/s", "--workers", "3", "--output", "csv"});
  ASSERT_EQ(result.exit, 0) << result.err;
  EXPECT_EQ(std::count(result.out.begin(), result.out.end(), ';'), 2);
  EXPECT_NEAR(std::stod(result.out), 1.0, 1e-9);
  EXPECT_NE(result.err.find("128 batches are no multiple of 3 workers: they do 129, 43 each"),
            std::string::npos)
      << result.err;
}

TEST(SimulateCommand, RefusesWhatMakesNoSense) {
  const auto refuses = [](const Words& more, const std::string& because, int code = 2) {
    const Result result = run(plus({"simulate", "--net", "lenet", "--workers", "4"}, more));
    EXPECT_EQ(result.exit, code) << result.err;
    EXPECT_NE(result.err.find(because), std::string::npos) << result.err;
    EXPECT_EQ(result.out, "");
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
  };
  const Words times{"--t-grad", "1", "--rate", "1Gbit/s"};
  refuses({"--rate", "1Gbit/s"}, "no times");
  refuses({"--t-grad", "1"}, "no link");
  for (const char* bad : {"0", "-1", "nan", "inf", "x"}) {
    refuses({"--t-grad", bad, "--rate", "1Gbit/s"}, "--t-grad");
    refuses({"--t-grad", "1", "--t-comm", bad}, "--t-comm");
  }
  refuses({"--t-grad", "1", "--rate", "fast"}, "'fast'");
  refuses(plus(times, {"--t-comm", "1"}), "give one of them");
  refuses(plus(times, {"--profile", "x"}), "give one of them");
  refuses(plus(times, {"--batches", "3"}), "4 workers for 3 batches");
  refuses(plus(times, {"--sync", "split", "--batch", "3"}), "4 workers for a batch of 3");
  refuses(plus(times, {"--average", "2", "--sync", "none"}), "--average goes with");
  refuses(plus(times, {"--share", "3:2:1"}), "--share 3:2:1 is for 3 workers, and there are 4");
  refuses(plus(times, {"--share", "3:2:1:x"}), "'3:2:1:x' is neither even");
  refuses(plus(times, {"--output", "csv", "--trace"}), "--output csv is of many runs");
  for (const char* bad : {"3", "4:2", "3:0", "3:-1", "3:nan", "3:fast", "1-:2", "2-1:2", "x:2",
                          "3:uniform:2:1", "3:lognormal", "3:lognormal:-1", ":", ""})
    refuses(plus(times, {"--slow", bad}), "'" + std::string(bad) + "'");
  for (const char* bad : {"3", "4:1", "0-1:1", "3:-1", "3:nan", "3:x"})
    refuses(plus(times, {"--lose", bad}), bad);
  refuses(plus(times, {"--link", "3:slow"}), "'slow'");
  refuses(plus(times, {"--link", "4:1Gbit/s"}), "--link '4:1Gbit/s': the last rank is 3");

  EXPECT_EQ(
      run({"simulate", "--net", "nonet", "--workers", "2", "--t-grad", "1", "--rate", "1Gbit/s"})
          .exit,
      2);
  const TemporaryFolder folder;
  const auto damaged = [&](const std::string& text, const std::string& because) {
    write_text(folder / "profile.json", text);
    refuses({"--profile", folder / "profile.json", "--rate", "1Gbit/s"}, because, 1);
  };
  damaged(R"({"version": 2})", "of another version");
  damaged(R"({"version": 1, "layers": [)", "damaged");
  damaged("", "damaged");
  damaged(R"({"version": 1, "network": "AlexNet", "layers": []})", "is of AlexNet");
  refuses({"--profile", folder / "nowhere", "--rate", "1Gbit/s"}, "cannot be read", 1);
}

}  // namespace
}  // namespace duplex::tools
