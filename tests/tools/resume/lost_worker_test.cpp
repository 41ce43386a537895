// Asynchronous trainings with a central server that lose workers while they go on: all batches are
// applied once, whoever trains them, and a worker may come back.
#include <signal.h>

#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>

#include "tests/tools/training_runs.h"
#include "tools/run_directory/row_file.h"
#include "tools/run_directory/rows.h"

namespace duplex::tools::testing {
namespace {

using Words = std::vector<std::string>;
namespace fs = std::filesystem;

class LostWorker : public TrainingRuns {
 protected:
  static constexpr int steps = 300;
  std::string checkpoint_every_ = "1000";  ///< Steps.

  Words flags(const Words& more) const {
    return plus({"--sync", "none", "--server", "central", "--lr", "0.001", "--momentum", "0.9",
                 "--batches", std::to_string(steps), "--checkpoint-every", checkpoint_every_},
                more);
  }
  std::vector<Process> begin(const std::string& name, int ranks, const Words& more = {}) const {
    return start(name, ranks, 6, flags(more), true);
  }
  /// The command of one rank, with the nodefile of a run that was begun.
  Process again(const std::string& name, int rank, const Words& more = {}) const {
    return Process(arguments(
        "dist", name, 6,
        plus(flags(more), {"--job", name, "--timeout", "20", "--nodefile",
                           folder_ / (name + ".nodes"), "--index", std::to_string(rank)})));
  }
  /// Rows of metrics.csv so far.
  int rows(const std::string& name) const {
    const std::string path = folder_ / (name + "/metrics.csv");
    const std::string text = fs::exists(path) ? read_text(path) : "\n";
    return static_cast<int>(std::count(text.begin(), text.end(), '\n')) - 1;
  }
  void await_rows(const std::string& name, int wanted) const {
    for (int i = 0; i < 8000; ++i) {
      if (rows(name) >= wanted) return;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    ADD_FAILURE() << name << " has not come to " << wanted << " rows in 40 s";
  }
  /// The number of the newest checkpoint that a rank has; 0: it has none.
  int newest_checkpoint(const std::string& name, int rank) const {
    int newest = 0;
    for (const auto& step : fs::directory_iterator(folder_ / (name + "/checkpoints")))
      if (fs::exists(step.path() / ("rank-" + std::to_string(rank) + ".safetensors")))
        newest = std::max(newest, std::stoi(step.path().filename().string().substr(5)));
    return newest;
  }
  void await_checkpoint(const std::string& name, int rank, int wanted) const {
    for (int i = 0; i < 8000; ++i) {
      if (fs::exists(folder_ / (name + "/checkpoints")) && newest_checkpoint(name, rank) >= wanted)
        return;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    ADD_FAILURE() << "rank " << rank << " of " << name << " has not come to checkpoint " << wanted;
  }
  nlohmann::json server(const std::string& name) const {
    return nlohmann::json::parse(read_text(folder_ / (name + "/rank-0.json")));
  }
  /// Expects every step of every worker once in the last checkpoint's chunks and in the staleness.
  void expect_all_applied(const std::string& name, int workers) const {
    std::set<std::string> found;
    for (const auto& entry : fs::directory_iterator(folder_ / (name + "/checkpoints")))
      if (fs::exists(entry.path() / "rank-0.safetensors"))
        found.insert((entry.path() / "rank-0.safetensors").string());
    ASSERT_FALSE(found.empty());
    std::string each;
    for (int worker = 0; worker < workers; ++worker)
      each += (worker == 0 ? "" : ",") + std::to_string(steps);
    const std::string applied = SafetensorsFile(*found.rbegin()).metadata().at("applied");
    EXPECT_EQ(applied.substr(applied.find(':')),
              ":" + std::to_string(workers * steps) + ":" + each);
    std::set<std::pair<int, std::uint64_t>> seen;
    for (const StalenessRow& row :
         read_rows<StalenessRow>(folder_ / (name + "/staleness-0.csv"), true))
      EXPECT_TRUE(seen.insert({row.worker, row.step}).second);
    EXPECT_EQ(seen.size(), static_cast<std::size_t>(workers * steps));
  }
  std::uint64_t leased(const std::string& name, int rank) const {
    std::uint64_t batches = 0;
    const nlohmann::json summary = server(name);
    for (const auto& lease : summary["leases"])
      if (lease["rank"] == rank) batches += lease["batches"].get<std::uint64_t>();
    return batches;
  }
};

TEST_F(LostWorker, OthersTrainItsBatches) {
  for (const int lost : {1, 2}) {
    const std::string name = "lost" + std::to_string(lost);
    SCOPED_TRACE(name);
    std::vector<Process> ranks =
        begin(name, 4, {"--mirror", "--overlap", lost == 1 ? "on" : "off"});
    await_rows(name, 20);
    ranks[static_cast<std::size_t>(lost)].kill(SIGKILL);
    for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
      const Result result = ranks[rank].wait();
      EXPECT_EQ(result.exit, static_cast<int>(rank) == lost ? 128 + SIGKILL : 0) << result.err;
    }
    expect_all_applied(name, 3);
    EXPECT_EQ(server(name)["lost"], nlohmann::json::array({lost}));
    EXPECT_EQ(server(name)["returned"], nlohmann::json::array());
    EXPECT_GT(leased(name, lost), 20U);
    EXPECT_TRUE(fs::exists(folder_ / (name + "/checkpoint.safetensors")));
    // The server tells the others, and so the summary of the first worker says it, too.
    EXPECT_EQ(fs::exists(folder_ / (name + "/summary.json")), lost != 1);
    for (const std::string file : {"summary.json", "rank-1.json", "rank-2.json", "rank-3.json"}) {
      const std::string path = folder_ / (name + "/" + file);
      if (!fs::exists(path)) continue;
      EXPECT_EQ(nlohmann::json::parse(read_text(path))["lost"], nlohmann::json::array({lost}))
          << file;
    }
  }
}

TEST_F(LostWorker, TwoMayBeLost) {
  std::vector<Process> ranks = begin("run", 4, {"--semaphore", "on"});
  await_rows("run", 20);
  ranks[2].kill(SIGKILL);
  await_rows("run", 40);
  ranks[3].kill(SIGKILL);
  for (const std::size_t rank : {0U, 1U}) {
    const Result result = ranks[rank].wait();
    EXPECT_EQ(result.exit, 0) << result.err;
  }
  expect_all_applied("run", 3);
  EXPECT_EQ(server("run")["lost"], nlohmann::json::array({2, 3}));
  EXPECT_EQ(server("run")["leases"].size(), 2U);
}

/// The same command starts it again, in the same directory; with --resume, too.
TEST_F(LostWorker, MayComeBack) {
  for (const int lost : {1, 2})
    for (const Words& more : {Words{}, Words{"--resume"}}) {
      const std::string name = "lost" + std::to_string(lost) + (more.empty() ? "" : "-resume");
      SCOPED_TRACE(name);
      std::vector<Process> ranks = begin(name, 3);
      await_rows(name, 20);
      ranks[static_cast<std::size_t>(lost)].kill(SIGKILL);
      Process back = again(name, lost, more);
      const Result result = back.wait();
      EXPECT_EQ(result.exit, 0) << result.err;
      EXPECT_NE(result.err.find("comes back, and goes on after "), std::string::npos) << result.err;
      for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
        const Result other = ranks[rank].wait();
        EXPECT_EQ(other.exit, static_cast<int>(rank) == lost ? 128 + SIGKILL : 0) << other.err;
      }
      expect_all_applied(name, 2);
      EXPECT_EQ(server(name)["lost"], nlohmann::json::array());
      EXPECT_EQ(server(name)["returned"], nlohmann::json::array({lost}));
      EXPECT_TRUE(fs::exists(folder_ / (name + "/summary.json")));
    }
}

/// It comes back while a checkpoint is open that was called for without it, or that it has taken
/// its part of, and counts on as the others do: the checkpoints go on, and all ranks have the last
/// one.
TEST_F(LostWorker, TakesPartInCheckpointsAgain) {
  checkpoint_every_ = "5";
  for (const bool marked : {false, true}) {
    const std::string name = marked ? "marked" : "called";
    SCOPED_TRACE(name);
    std::vector<Process> ranks = begin(name, 4);
    await_rows(name, 20);
    if (!marked) {
      ranks[2].kill(SIGKILL);
      // The others complete what is open.
      await_rows(name, rows(name) + 20);
    }
    ranks[3].kill(SIGSTOP);
    // The others make enough steps for the server to call for the next one.
    await_rows(name, rows(name) + 40);
    ranks[1].kill(SIGSTOP);
    const int open = newest_checkpoint(name, 1);
    EXPECT_LT(newest_checkpoint(name, 0), open);
    if (marked) {
      ranks[2].kill(SIGKILL);
      EXPECT_EQ(newest_checkpoint(name, 2), open);
    } else {
      EXPECT_LT(newest_checkpoint(name, 2), open);
    }
    ranks[2].wait();
    // It sets that file aside when it goes on.
    write_text(folder_ / (name + "/traffic-2.csv"), "x\n");
    Process back = again(name, 2);
    await_bytes(folder_ / (name + "/traffic-2.1.csv"), 2);
    for (const std::size_t rank : {1U, 3U}) ranks[rank].kill(SIGCONT);
    for (Process* rank : {&ranks[0], &ranks[1], &back, &ranks[3]}) {
      const Result result = rank->wait();
      EXPECT_EQ(result.exit, 0) << result.err;
    }
    EXPECT_GT(newest_checkpoint(name, 0), open + 1) << "the one at the end is not the only one";
    for (const int rank : {1, 2, 3})
      EXPECT_EQ(newest_checkpoint(name, rank), newest_checkpoint(name, 0)) << rank;
    expect_all_applied(name, 3);
  }
}

/// It comes back when the others have written a checkpoint without it, into the folder that all
/// ranks share: it goes on from its own part of an older one, or from none.
TEST_F(LostWorker, ComesBackBehindACheckpointOfTheOthers) {
  for (const bool has_one : {false, true}) {
    const std::string name = has_one ? "older" : "none";
    SCOPED_TRACE(name);
    checkpoint_every_ = has_one ? "5" : "60";
    std::vector<Process> ranks = begin(name, 3);
    await_rows(name, 5);
    if (has_one) await_checkpoint(name, 2, 1);
    ranks[2].kill(SIGKILL);
    ranks[2].wait();
    const int before = newest_checkpoint(name, 2);
    EXPECT_EQ(before > 0, has_one);
    await_checkpoint(name, 0, before + 1);
    Process back = again(name, 2, has_one ? Words{} : Words{"--resume"});
    const Result result = back.wait();
    EXPECT_EQ(result.exit, 0) << result.err;
    for (const std::size_t rank : {0U, 1U}) {
      const Result other = ranks[rank].wait();
      EXPECT_EQ(other.exit, 0) << other.err;
    }
    expect_all_applied(name, 2);
    EXPECT_EQ(server(name)["returned"], nlohmann::json::array({2}));
  }
}

/// With one worker nobody goes on meanwhile, so the training comes to the bits of another one. The
/// batch that it was killed in counts once, too.
TEST_F(LostWorker, TheOnlyOneMayComeBack) {
  std::vector<Process> ranks = begin("run", 2);
  for (const int rows : {15, 40}) {
    await_rows("run", rows);
    ranks[1].kill(SIGKILL);
    ranks[1].wait();
    ranks.pop_back();
    ranks.push_back(again("run", 1));
  }
  for (Process& rank : ranks) {
    const Result result = rank.wait();
    EXPECT_EQ(result.exit, 0) << result.err;
  }
  expect_all_applied("run", 1);
  EXPECT_EQ(server("run")["returned"], nlohmann::json::array({1, 1}));
}

TEST_F(LostWorker, AServerWaitsForTheOnlyOneForTheTimeOut) {
  std::vector<Process> ranks = begin("run", 2, {"--timeout", "3"});
  await_rows("run", 10);
  ranks[1].kill(SIGKILL);
  const Result result = ranks[0].wait();
  EXPECT_EQ(result.exit, 3) << result.err;
  EXPECT_NE(result.err.find("waits for a worker to come back"), std::string::npos) << result.err;
  EXPECT_NE(result.err.find("keeps the training as it is"), std::string::npos) << result.err;
  // All of it is there for those that begin again.
  std::vector<Process> rest = begin("run", 2, {"--resume"});
  for (Process& rank : rest) {
    const Result end = rank.wait();
    EXPECT_EQ(end.exit, 0) << end.err;
  }
  expect_all_applied("run", 1);
}

/// A signal while leased batches are trained: all go on, and every batch is applied once.
TEST_F(LostWorker, ASignalMeanwhileLosesNothing) {
  std::vector<Process> ranks = begin("run", 3);
  await_rows("run", 5);
  ranks[2].kill(SIGKILL);
  await_rows("run", steps - 1);
  std::this_thread::sleep_for(std::chrono::milliseconds(30));
  ranks[0].kill(SIGTERM);
  for (const std::size_t rank : {0U, 1U}) {
    const Result result = ranks[rank].wait();
    EXPECT_TRUE(result.exit == 143 || result.exit == 0) << result.exit << result.err;
  }
  for (Process& rank : begin("run", 3, {"--resume"})) {
    const Result result = rank.wait();
    EXPECT_EQ(result.exit, 0) << result.err;
  }
  expect_all_applied("run", 2);
}

/// A rank that is there already is no lost one.
TEST_F(LostWorker, NobodyTakesThePlaceOfOneThatIsThere) {
  std::vector<Process> ranks = begin("run", 2);
  await_rows("run", 5);
  Process second = again("run", 1, {"--logdir", folder_ / "elsewhere", "--timeout", "1"});
  for (Process& rank : ranks) {
    const Result result = rank.wait();
    EXPECT_EQ(result.exit, 0) << result.err;
  }
  EXPECT_NE(second.wait().exit, 0);
  expect_all_applied("run", 1);
  EXPECT_EQ(server("run")["returned"], nlohmann::json::array());
}

TEST_F(LostWorker, ADirectoryThatIsUsedIsRefusedWhereNothingGoesOn) {
  for (Process& rank : begin("run", 2)) EXPECT_EQ(rank.wait().exit, 0);
  fs::remove(folder_ / "run/ledger-0.csv");
  for (const char* file : {"/traffic-0.csv", "/rank-0.json", "/staleness-0.csv"})
    fs::remove(folder_ / ("run" + std::string(file)));
  for (Process& rank : begin("run", 2)) {
    const Result result = rank.wait();
    EXPECT_EQ(result.exit, 2) << result.err;
    EXPECT_NE(result.err.find("holds a run already"), std::string::npos) << result.err;
    EXPECT_NE(result.err.find("give another --logdir, or remove it"), std::string::npos)
        << result.err;
  }
}

TEST_F(LostWorker, AReplaysBatchesAreTrainedByOthers) {
  write_text(folder_ / "nodes", nodes_here(3));
  Process launch(plus({"launch", "--nodefile", folder_ / "nodes", "--"},
                      {"--net", "lenet", "--device", "replay:0.02", "--batch", "8", "--batches",
                       "200", "--sync", "none", "--server", "central", "--timeout", "20", "--job",
                       "replay", "--logdir", folder_ / "replay"}));
  await_rows("replay", 10);
  const std::vector<int> found = processes_with({" dist ", folder_ / "replay", "--index 2"});
  ASSERT_EQ(found.size(), 1U);
  ::kill(found[0], SIGKILL);
  const Result result = launch.wait();
  EXPECT_EQ(result.exit, 128 + SIGKILL) << result.err;
  EXPECT_GT(leased("replay", 2), 10U);
  const auto rows = read_rows<StalenessRow>(folder_ / "replay/staleness-0.csv", true);
  EXPECT_EQ(rows.size(), 400U);
}

/// launch starts just the lost worker again.
TEST_F(LostWorker, LaunchStartsItAgain) {
  std::string nodes;
  for (int port : free_ports(3)) nodes += "127.0.0.1:" + std::to_string(port) + "\n";
  write_text(folder_ / "nodes", nodes);
  Process launch(plus({"launch", "--restarts", "3", "--nodefile", folder_ / "nodes", "--", "--net",
                       "lenet", "--datadir", data_.path(), "--batch", "6", "--threads", "1",
                       "--timeout", "20", "--logdir", folder_ / "run"},
                      flags({})));
  for (const int rank : {2, 1}) {
    await_rows("run", rank == 2 ? 15 : 30);
    const std::vector<int> found =
        processes_with({" dist ", folder_ / "run", "--index " + std::to_string(rank)});
    ASSERT_EQ(found.size(), 1U);
    ::kill(found[0], SIGKILL);
  }
  const Result result = launch.wait();
  EXPECT_EQ(result.exit, 0) << result.err;
  EXPECT_NE(result.err.find("starts rank 2 again ("), std::string::npos) << result.err;
  EXPECT_NE(result.err.find("starts rank 1 again ("), std::string::npos) << result.err;
  EXPECT_EQ(result.err.find("starts all ranks again"), std::string::npos) << result.err;
  expect_all_applied("run", 2);
  EXPECT_EQ(server("run")["returned"].size(), 2U);
}

}  // namespace
}  // namespace duplex::tools::testing
