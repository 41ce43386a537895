// Asynchronous trainings that end early and go on from their checkpoints. With one worker there is
// an undisturbed training to compare with; with several, every batch must count once.
#include <signal.h>

#include <chrono>
#include <filesystem>
#include <map>
#include <set>
#include <sstream>
#include <thread>
#include <tuple>

#include "net/ledger/ledger_row.h"
#include "tests/tools/training_runs.h"
#include "tools/run_directory/row_file.h"
#include "tools/run_directory/rows.h"

namespace duplex::tools::testing {
namespace {

using Words = std::vector<std::string>;
namespace fs = std::filesystem;

class AsyncResume : public TrainingRuns {
 protected:
  /// Starts all ranks of a training in `name`, which keeps what is there.
  std::vector<Process> begin(const std::string& name, int ranks, const Words& more,
                             int batch = 6) const {
    return start(name, ranks, batch, plus({"--sync", "none", "--lr", "0.001"}, more), true);
  }
  /// Runs them to their end. Returns what each said.
  std::vector<std::string> train(const std::string& name, int ranks, const Words& more,
                                 int exit = 0, int batch = 6) const {
    std::vector<std::string> said;
    for (Process& rank : begin(name, ranks, more, batch)) {
      const Result result = rank.wait();
      EXPECT_EQ(result.exit, exit) << result.err;
      said.push_back(result.out + result.err);
    }
    return said;
  }
  Weights trained(const std::string& name) const {
    return read_weights(folder_ / (name + "/checkpoint.safetensors"));
  }
  /// The files of a rank's checkpoints, oldest first.
  std::vector<std::string> files_of(const std::string& name, int rank) const {
    std::set<std::string> found;
    std::error_code none;
    for (const auto& entry : fs::directory_iterator(folder_ / (name + "/checkpoints"), none)) {
      const fs::path file = entry.path() / ("rank-" + std::to_string(rank) + ".safetensors");
      if (fs::exists(file)) found.insert(file.string());
    }
    return {found.begin(), found.end()};
  }
  /// Waits until a rank has written so many checkpoints, of which the last two stay.
  void await_checkpoint(const std::string& name, int number, int rank) const {
    const std::string digits = std::to_string(number);
    const std::string least =
        folder_ / (name + "/checkpoints/step-" + std::string(10 - digits.size(), '0') + digits);
    for (int i = 0; i < 2000; ++i) {
      const std::vector<std::string> files = files_of(name, rank);
      if (!files.empty() && files.back() > least) return;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    ADD_FAILURE() << "rank " << rank << " of " << name << " has no checkpoint " << number;
  }
  /// Expects that the last checkpoint of a rank has every gradient of so many steps of each worker
  /// in each of its chunks, and has updated each as often.
  void expect_all_applied(const std::string& name, int rank, int workers, int steps) const {
    const std::vector<std::string> files = files_of(name, rank);
    ASSERT_FALSE(files.empty());
    const std::string applied = SafetensorsFile(files.back()).metadata().at("applied");
    std::string each;
    for (int worker = 0; worker < workers; ++worker)
      each += (worker == 0 ? "" : ",") + std::to_string(steps);
    std::istringstream groups(applied);
    for (std::string group; std::getline(groups, group, ';');)
      EXPECT_EQ(group.substr(group.find(':')), ":" + std::to_string(workers * steps) + ":" + each);
  }
  /// Expects a row of staleness for every step of every worker, of all runs together.
  void expect_each_step_once(const std::string& name, int owner, int workers, int steps) const {
    std::set<std::pair<int, std::uint64_t>> seen;
    const auto rows = read_rows<StalenessRow>(
        folder_ / (name + "/staleness-" + std::to_string(owner) + ".csv"), true);
    for (const StalenessRow& row : rows) EXPECT_TRUE(seen.insert({row.worker, row.step}).second);
    EXPECT_EQ(seen.size(), static_cast<std::size_t>(workers * steps));
  }
  /// Expects every gradient that an owner received, over both parts of a run, once in its ledgers.
  void expect_each_gradient_once(const std::string& name, int owner, int peers, int steps) const {
    std::map<std::tuple<int, std::uint64_t, std::uint32_t, std::uint32_t>, int> came;
    std::set<std::pair<std::uint32_t, std::uint32_t>> chunks;
    for (const char* part : {".1.csv", ".csv"})
      for (const net::LedgerRow& row : read_rows<net::LedgerRow>(
               folder_ / (name + "/ledger-" + std::to_string(owner) + part), true)) {
        if (row.kind != "gradient" || row.sent) continue;
        ++came[{row.peer, row.step, row.parameter, row.chunk}];
        chunks.insert({row.parameter, row.chunk});
      }
    EXPECT_EQ(came.size(), chunks.size() * static_cast<std::size_t>(peers * steps));
    for (const auto& [gradient, times] : came) EXPECT_EQ(times, 1) << std::get<1>(gradient);
  }
};

TEST_F(AsyncResume, OneWorkerGoesOnToTheSameBits) {
  const std::vector<Words> cases{{"--momentum", "0.9", "--mirror"},
                                 {"--optimizer", "adam", "--overlap", "off"},
                                 {"--momentum", "0.5", "--semaphore", "on", "--lr-steps", "11"},
                                 {"--net", "squeezenet", "--input", "48", "--momentum", "0.9"},
                                 {"--device", "reference", "--optimizer", "adam"}};
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const std::string name = "case" + std::to_string(i), whole = name + "-whole";
    const Words flags = plus(cases[i], {"--server", "central", "--test-every", "1"});
    SCOPED_TRACE(i);
    train(whole, 2, plus(flags, {"--batches", "16"}));
    train(name, 2, plus(flags, {"--batches", "8", "--checkpoint-every", "1000"}));
    const auto said = train(name, 2, plus(flags, {"--batches", "16", "--resume"}));
    EXPECT_NE(said[1].find("goes on after 8 steps"), std::string::npos) << said[1];
    EXPECT_NE(said[0].find("goes on after 8 steps of its 1 worker"), std::string::npos) << said[0];
    EXPECT_EQ(trained(name), trained(whole));
    const std::string rows = read_text(folder_ / (name + "/metrics.csv"));
    EXPECT_EQ(std::count(rows.begin(), rows.end(), '\n'), 17);
    expect_all_applied(name, 0, 1, 16);
    expect_each_step_once(name, 0, 1, 16);
  }
}

TEST_F(AsyncResume, RunningStatisticsOfOneWorkerGoOn) {
  const Words flags{
      "--net", network_with_statistics(), "--momentum", "0.9", "--server", "central", "--resume"};
  for (const auto& [name, batches] : {std::pair{"whole", "4"}, std::pair{"parts", "2"}})
    train(name, 2, plus(flags, {"--batches", batches}), 0, 2);
  train("parts", 2, plus(flags, {"--batches", "4"}), 0, 2);
  EXPECT_EQ(trained("parts"), trained("whole"));
}

/// Wherever in a step the signal comes, nothing is lost and nothing is applied twice.
TEST_F(AsyncResume, ASignalLosesNothingOfOneWorker) {
  const Words flags{"--server", "central", "--momentum", "0.9", "--batches", "120"};
  train("whole", 2, flags);
  for (const int rank : {0, 1}) {
    const std::string name = "stopped" + std::to_string(rank);
    SCOPED_TRACE(name);
    std::vector<Process> ranks = begin(name, 2, flags);
    await_bytes(folder_ / (name + "/metrics.csv"), 200);
    ranks[static_cast<std::size_t>(rank)].kill(SIGUSR1);
    await_checkpoint(name, 1, 0);
    ranks[static_cast<std::size_t>(rank)].kill(SIGTERM);
    for (Process& each : ranks) {
      const Result ended = each.wait();
      EXPECT_EQ(ended.exit, 143) << ended.err;
      EXPECT_NE(ended.err.find("--resume --logdir " + (folder_ / name)), std::string::npos)
          << ended.err;
    }
    EXPECT_FALSE(fs::exists(folder_ / (name + "/summary.json")));
    EXPECT_EQ(files_of(name, 0).size(), 2U) << "one of each signal";
    EXPECT_EQ(files_of(name, 1).size(), 2U);
    train(name, 2, plus(flags, {"--resume"}));
    EXPECT_EQ(trained(name), trained("whole"));
  }
}

/// The checkpoint that the training goes on from was taken while it went on.
TEST_F(AsyncResume, OneWorkerGoesOnFromACheckpointInTheMiddle) {
  const Words flags{"--server", "central", "--optimizer", "adam", "--batches", "150"};
  train("whole", 2, flags);
  std::vector<Process> ranks = begin("killed", 2, plus(flags, {"--checkpoint-every", "10"}));
  await_checkpoint("killed", 2, 0);
  await_checkpoint("killed", 2, 1);
  // Both at once, so that the worker keeps nothing of its own.
  for (Process& each : ranks) each.kill(SIGSTOP);
  for (Process& each : ranks) each.kill(SIGKILL);
  for (Process& each : ranks) each.wait();
  const auto said = train("killed", 2, plus(flags, {"--resume"}));
  EXPECT_NE(said[1].find("goes on after "), std::string::npos) << said[1];
  EXPECT_EQ(trained("killed"), trained("whole"));
}

TEST_F(AsyncResume, ASignalToAnyOfSeveralRanksLosesNothing) {
  const int steps = 60;
  for (const std::string server : {"distributed", "central"}) {
    const bool central = server == "central";
    const Words flags{
        "--server", server,      "--momentum",          "0.9",       "--ledger",
        "all",      "--batches", std::to_string(steps), "--overlap", central ? "off" : "on"};
    const int workers = central ? 2 : 3;
    for (const int rank : {0, 1, 2}) {
      const std::string name = server + std::to_string(rank);
      SCOPED_TRACE(name);
      std::vector<Process> ranks = begin(name, 3, flags);
      await_bytes(folder_ / (name + "/metrics.csv"), 800);
      ranks[static_cast<std::size_t>(rank)].kill(SIGINT);
      for (Process& each : ranks) {
        const Result ended = each.wait();
        EXPECT_EQ(ended.exit, 130) << ended.err;
      }
      for (const int each : {0, 1, 2}) EXPECT_EQ(files_of(name, each).size(), 1U);
      train(name, 3, plus(flags, {"--resume"}));
      for (int owner = 0; owner < (central ? 1 : 3); ++owner) {
        expect_all_applied(name, owner, workers, steps);
        expect_each_step_once(name, owner, workers, steps);
        expect_each_gradient_once(name, owner, 2, steps);
      }
    }
  }
}

/// A worker that has trained all its batches waits for a slower one, and hears of calls meanwhile.
TEST_F(AsyncResume, AWorkerThatHasEndedTakesPart) {
  const Words flags{"--server", "central", "--momentum", "0.9", "--batches", "60"};
  std::vector<Process> ranks = begin("run", 3, flags);
  await_bytes(folder_ / "run/metrics.csv", 100);
  ranks[2].kill(SIGSTOP);
  for (int i = 0; i < 2000; ++i) {
    const std::string rows = read_text(folder_ / "run/metrics.csv");
    if (std::count(rows.begin(), rows.end(), '\n') == 61) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  ranks[1].kill(SIGTERM);
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  ranks[2].kill(SIGCONT);
  for (Process& each : ranks) EXPECT_EQ(each.wait().exit, 143);
  const auto said = train("run", 3, plus(flags, {"--resume"}));
  EXPECT_NE(said[1].find("goes on after 60 steps"), std::string::npos) << said[1];
  expect_all_applied("run", 0, 2, 60);
}

/// Whoever is killed, all ranks go on from the newest checkpoint that all have, and every batch is
/// in the weights once.
TEST_F(AsyncResume, ARankThatIsKilledCostsNoBatch) {
  for (const std::string server : {"distributed", "central"})
    for (const int rank : {0, 1, 2}) {
      const bool central = server == "central";
      const std::string name = server + std::to_string(rank);
      SCOPED_TRACE(name);
      const Words flags{"--server",  server, "--momentum",         "0.9",
                        "--batches", "150",  "--checkpoint-every", "10"};
      std::vector<Process> ranks = begin(name, 3, flags);
      for (const int each : {0, 1, 2}) await_checkpoint(name, 2, each);
      ranks[static_cast<std::size_t>(rank)].kill(SIGKILL);
      for (Process& each : ranks) each.wait();
      train(name, 3, plus(flags, {"--resume"}));
      for (int owner = 0; owner < (central ? 1 : 3); ++owner)
        expect_each_step_once(name, owner, central ? 2 : 3, 150);
      // The optimiser of a server that was killed has begun anew.
      if (!central || rank != 0) expect_all_applied(name, 0, central ? 2 : 3, 150);
    }
}

TEST_F(AsyncResume, WorkersKeepTheWeightsOfALostServer) {
  const Words flags{"--server",  "central", "--momentum",         "0.9",
                    "--batches", "100",     "--checkpoint-every", "1000"};
  const auto lose_the_server = [&](const std::string& name) {
    std::vector<Process> ranks = begin(name, 3, flags);
    await_bytes(folder_ / (name + "/metrics.csv"), 800);
    ranks[0].kill(SIGKILL);
    for (Process& each : ranks) {
      const Result ended = each.wait();
      if (&each == &ranks[0]) continue;
      EXPECT_EQ(ended.exit, 3) << ended.err;
      EXPECT_NE(ended.err.find("keeps the weights that it got last, after its step "),
                std::string::npos)
          << ended.err;
    }
  };
  lose_the_server("together");
  const auto said = train("together", 3, plus(flags, {"--resume"}));
  EXPECT_NE(said[0].find("takes the weights that "), std::string::npos) << said[0];
  EXPECT_NE(said[1].find("goes on after "), std::string::npos) << said[1];
  expect_each_step_once("together", 0, 2, 100);
  const std::string rows = read_text(folder_ / "together/metrics.csv");
  EXPECT_EQ(std::count(rows.begin(), rows.end(), '\n'), 101);

  // The server's machine is another, and has nothing: it gets the files of the workers.
  lose_the_server("apart");
  std::string nodes;
  for (int port : free_ports(3)) nodes += "127.0.0.1:" + std::to_string(port) + "\n";
  write_text(folder_ / "apart.nodes", nodes);
  std::vector<Process> ranks;
  for (int rank = 0; rank < 3; ++rank)
    ranks.emplace_back(arguments(
        "dist", rank == 0 ? "elsewhere" : "apart", 6,
        plus(flags, {"--sync", "none", "--lr", "0.001", "--resume", "--timeout", "20", "--nodefile",
                     folder_ / "apart.nodes", "--index", std::to_string(rank)})));
  std::vector<std::string> errors;
  for (Process& each : ranks) {
    const Result ended = each.wait();
    EXPECT_EQ(ended.exit, 0) << ended.err;
    errors.push_back(ended.err);
  }
  for (const char* says : {"has the part of rank 1 ", "has the part of rank 2 ",
                           "takes the weights that ", "goes on after "})
    EXPECT_NE(errors[0].find(says), std::string::npos) << errors[0];
  expect_each_step_once("elsewhere", 0, 2, 100);
}

/// A server without a checkpoint does not begin anew where a worker's files say that there was one.
TEST_F(AsyncResume, AServerThatHasLostItsFilesRefuses) {
  const Words flags{"--server", "central", "--checkpoint-every", "1000", "--batches", "6"};
  train("run", 3, flags);
  const std::vector<std::string> before = files_of("run", 2);
  for (const std::string& file : files_of("run", 0)) fs::remove(file);
  for (const std::string& said : train("run", 3, plus(flags, {"--resume"}), 1))
    EXPECT_NE(said.find("no checkpoint is there on all ranks; steps there are on rank 0: none"),
              std::string::npos)
        << said;
  EXPECT_EQ(files_of("run", 2), before);
}

TEST_F(AsyncResume, AnotherNumberOfRanksIsRefused) {
  for (const std::string server : {"distributed", "central"}) {
    const Words flags{"--server", server, "--checkpoint-every", "4", "--batches", "8"};
    train(server, 3, flags);
    for (const int ranks : {2, 4})
      for (const std::string& said : train(server, ranks, plus(flags, {"--resume"}), 2))
        EXPECT_NE(said.find("is of 3 ranks, and this run has " + std::to_string(ranks) +
                            "; with --sync none every worker goes on with a step of its own"),
                  std::string::npos)
            << said;
    train(server, 3, plus(flags, {"--resume"}));
  }
}

/// Never a mixture: where the newest is damaged on one rank, all go on from the one before.
TEST_F(AsyncResume, GoesOnFromTheNewestThatAllHave) {
  for (const std::string server : {"distributed", "central"})
    for (const int damaged : {0, 2}) {
      const std::string name = server + std::to_string(damaged);
      SCOPED_TRACE(name);
      const Words flags{"--server",  server, "--momentum",         "0.9",
                        "--batches", "60",   "--checkpoint-every", "15"};
      train(name, 3, flags);
      std::map<int, std::vector<std::string>> files;
      for (const int rank : {0, 1, 2}) {
        files[rank] = files_of(name, rank);
        ASSERT_EQ(files[rank].size(), 2U) << "the last two are kept";
      }
      fs::resize_file(files[damaged].back(), 100);
      train(name, 3, plus(flags, {"--resume"}));
      const int workers = server == "central" ? 2 : 3;
      expect_all_applied(name, 0, workers, 60);
      expect_each_step_once(name, 0, workers, 60);
    }
}

TEST_F(AsyncResume, LaunchStartsAgain) {
  const Words flags{"--net",     "lenet", "--datadir",          data_.path(), "--batch",   "6",
                    "--threads", "1",     "--batches",          "120",        "--timeout", "4",
                    "--sync",    "none",  "--checkpoint-every", "10",         "--lr",      "0.01"};
  for (const std::string server : {"distributed", "central"}) {
    SCOPED_TRACE(server);
    std::string nodes;
    for (int port : free_ports(3)) nodes += "127.0.0.1:" + std::to_string(port) + "\n";
    write_text(folder_ / (server + ".nodes"), nodes);
    Process launch(
        plus({"launch", "--restarts", "3", "--nodefile", folder_ / (server + ".nodes"), "--"},
             plus(flags, {"--server", server, "--logdir", folder_ / server})));
    for (const int rank : {0, 1, 2}) await_checkpoint(server, 2, rank);
    const std::vector<int> ranks = processes_with({" dist ", folder_ / server, "--index 0"});
    ASSERT_EQ(ranks.size(), 1U);
    ::kill(ranks[0], SIGKILL);
    const Result result = launch.wait();
    EXPECT_EQ(result.exit, 0) << result.err;
    EXPECT_NE(result.err.find("(1 of 3)"), std::string::npos) << result.err;
    expect_each_step_once(server, 0, server == "central" ? 2 : 3, 120);
  }
}

}  // namespace
}  // namespace duplex::tools::testing
