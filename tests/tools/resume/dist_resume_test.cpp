// Trainings of several ranks that end early and go on from their checkpoints, against trainings
// that nothing disturbed.
#include <signal.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <thread>

#include "tests/tools/training_runs.h"

namespace duplex::tools::testing {
namespace {

using Words = std::vector<std::string>;

class DistResume : public TrainingRuns {
 protected:
  /// Starts all ranks of a training in `name`, which keeps what is there.
  std::vector<Process> begin(const std::string& name, int ranks, const Words& more,
                             int batch = 6) const {
    return start(name, ranks, batch, more, true);
  }
  /// Runs them to their end. Returns what rank 0 said.
  std::string train(const std::string& name, int ranks, const Words& more, int exit = 0,
                    int batch = 6) const {
    std::string said;
    for (Process& rank : begin(name, ranks, more, batch)) {
      const Result result = rank.wait();
      EXPECT_EQ(result.exit, exit) << result.err;
      if (said.empty()) said = result.out + result.err;
    }
    return said;
  }
  Weights trained(const std::string& name) const {
    return read_weights(folder_ / (name + "/checkpoint.safetensors"));
  }
  /// Removes a rank's part of a checkpoint, and the copy of it.
  void lose(const std::string& name, int steps, int rank) const {
    const std::string own = checkpoint(name, steps, rank);
    std::filesystem::remove(own);
    std::filesystem::remove(own.substr(0, own.rfind('.')) + "-copy.safetensors");
  }
  std::string checkpoint(const std::string& name, int steps, int rank) const {
    std::string digits = std::to_string(steps);
    digits.insert(0, 10 - digits.size(), '0');
    return folder_ / (name + "/checkpoints/step-" + digits + "/rank-" + std::to_string(rank) +
                      ".safetensors");
  }
};

/// A training may end within a round of --average, at which there is no checkpoint: the last whole
/// round has one, though nobody has asked for it there, and what is behind it is trained again.
TEST_F(DistResume, TheLastWholeRoundIsKept) {
  const Words average{"--average", "3", "--momentum", "0.9", "--checkpoint-every", "1000"};
  const std::string said = train("run", 2, plus(average, {"--batches", "11"}));
  EXPECT_NE(said.find("no checkpoint has its last 2 steps"), std::string::npos) << said;
  EXPECT_TRUE(std::filesystem::exists(checkpoint("run", 9, 1)));
  const std::string rest = train("run", 2, plus(average, {"--batches", "15", "--resume"}));
  EXPECT_NE(rest.find("goes on after 9 steps"), std::string::npos) << rest;
  EXPECT_EQ(rest.find("no checkpoint has"), std::string::npos) << rest;
  train("whole", 2, plus(average, {"--batches", "15"}));
  EXPECT_EQ(trained("run"), trained("whole"));
}

/// A rank that fails behind the run's end keeps no other checkpoint than the last one, which all
/// ranks have.
TEST_F(DistResume, WhatFailsBehindTheEndLeavesNoPart) {
  std::vector<Process> ranks =
      begin("run", 2, {"--batches", "12", "--checkpoint-every", "5", "--save", "/dev/full"});
  const Result first = ranks[0].wait(), second = ranks[1].wait();
  EXPECT_EQ(first.exit, 1) << first.err;
  EXPECT_EQ(second.exit, 0) << second.err;
  EXPECT_NE(first.err.find("trained to its end, but /dev/full"), std::string::npos) << first.err;
  EXPECT_EQ(first.err.find("keeps its part"), std::string::npos) << first.err;
  EXPECT_FALSE(std::filesystem::exists(checkpoint("run", 11, 0)));
  EXPECT_TRUE(std::filesystem::exists(checkpoint("run", 12, 0)));
}

/// The server still writes a checkpoint, and has the order for the next one, when it loses a
/// worker: it takes that one before it keeps what it has.
TEST_F(DistResume, AServerThatStillWritesKeepsItsPart) {
  const std::string slow = checkpoint("run", 5, 0);
  std::filesystem::create_directories(std::filesystem::path(slow).parent_path());
  ASSERT_EQ(::mkfifo(slow.c_str(), 0600), 0);
  std::vector<Process> ranks =
      begin("run", 3, {"--server", "central", "--batches", "1000", "--checkpoint-every", "5"});
  const auto rows = [this] {
    const std::string text = read_text(folder_ / "run/metrics.csv");
    return std::count(text.begin(), text.end(), '\n');
  };
  // The first worker trains no further before the server has taken the second one.
  for (int i = 0, still = 0; i < 4000 && (rows() < 11 || still < 40); ++i, ++still) {
    const auto before = rows();
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    if (rows() != before) still = 0;
  }
  EXPECT_LT(rows(), 20);
  ranks[2].kill(SIGKILL);
  EXPECT_EQ(ranks[1].wait().exit, 3);
  EXPECT_GT(read_text(slow).size(), 1000U);
  const Result server = ranks[0].wait();
  EXPECT_EQ(server.exit, 3) << server.err;
  EXPECT_TRUE(std::filesystem::exists(checkpoint("run", 10, 0))) << server.err;
}

TEST_F(DistResume, GoesOnToTheSameBits) {
  const std::vector<Words> cases{
      {"--momentum", "0.9", "--mirror"},
      {"--optimizer", "adam", "--server", "central"},
      {"--sync", "split", "--momentum", "0.9", "--lr-steps", "7"},
      {"--sync", "split", "--server", "central", "--semaphore", "on", "--momentum", "0.9"},
      {"--average", "2", "--momentum", "0.9"},
      {"--overlap", "off", "--shards", "tensors", "--optimizer", "adam"},
      {"--wire", "bf16", "--momentum", "0.9"},
      {"--wire", "lossless", "--optimizer", "adam"},
      {"--wire", "lossless", "--average", "2", "--momentum", "0.9"},
      {"--factors", "on", "--momentum", "0.9", "--nesterov"},
      {"--factors", "on", "--optimizer", "adam", "--sync", "split", "--wire", "lossless"},
      {"--wire", "weights:fp16,gradients:bf16", "--server", "central"},
      {"--device", "reference", "--momentum", "0.5"}};
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const std::string name = "case" + std::to_string(i), whole = name + "-whole";
    SCOPED_TRACE(i);
    train(whole, 3, plus(cases[i], {"--batches", "16"}));
    train(name, 3, plus(cases[i], {"--batches", "8", "--checkpoint-every", "4"}));
    const std::string said = train(name, 3, plus(cases[i], {"--batches", "16", "--resume"}));
    EXPECT_NE(said.find("goes on after 8 steps"), std::string::npos) << said;
    EXPECT_EQ(trained(name), trained(whole));
    const std::string rows = read_text(folder_ / (name + "/metrics.csv"));
    EXPECT_EQ(std::count(rows.begin(), rows.end(), '\n'), 17);
  }
}

/// A network with batch normalisation: each worker's running statistics go on, too.
TEST_F(DistResume, RunningStatisticsGoOn) {
  const Words net{"--net", network_with_statistics(), "--momentum", "0.9"};
  for (const auto& [name, batches] : {std::pair{"whole", "4"}, std::pair{"parts", "2"}})
    train(name, 2, plus(net, {"--batches", batches, "--checkpoint-every", "2"}), 0, 2);
  train("parts", 2, plus(net, {"--batches", "4", "--resume"}), 0, 2);
  EXPECT_EQ(trained("parts"), trained("whole"));
}

TEST_F(DistResume, ASignalToAnyRankEndsAllWithACheckpoint) {
  for (const char* server : {"distributed", "central"}) {
    const Words flags{"--server", server, "--momentum", "0.9", "--batches", "70"};
    const std::string whole = std::string(server) + "-whole";
    train(whole, 3, flags);
    for (const int rank : {0, 1, 2}) {
      const std::string name = std::string(server) + std::to_string(rank);
      SCOPED_TRACE(name);
      std::vector<Process> ranks = begin(name, 3, flags);
      await_bytes(folder_ / (name + "/metrics.csv"), 200);
      ranks[static_cast<std::size_t>(rank)].kill(SIGUSR1);
      await_bytes(folder_ / (name + "/metrics.csv"), 1000);
      ranks[static_cast<std::size_t>(rank)].kill(SIGTERM);
      for (Process& each : ranks) {
        const Result ended = each.wait();
        EXPECT_EQ(ended.exit, 143) << ended.err;
        EXPECT_NE(ended.err.find("--resume --logdir " + (folder_ / name)), std::string::npos)
            << ended.err;
      }
      EXPECT_FALSE(std::filesystem::exists(folder_ / (name + "/summary.json")));
      // One of each signal.
      std::size_t there = 0;
      for (const auto& entry :
           std::filesystem::directory_iterator(folder_ / (name + "/checkpoints"))) {
        ++there;
        // LeNet's workers hold nothing that a central server does not.
        for (const int each : {0, 1, 2})
          EXPECT_EQ(std::filesystem::exists(entry.path() /
                                            ("rank-" + std::to_string(each) + ".safetensors")),
                    each == 0 || server == std::string("distributed"));
      }
      EXPECT_EQ(there, 2U);
      train(name, 3, plus(flags, {"--resume"}));
      EXPECT_EQ(trained(name), trained(whole));
    }
  }
}

/// A rank that is stopped for longer than the time-out ends the run; one of a central server may be
/// killed, since it holds nothing that the others lack. Nothing of the training is lost.
TEST_F(DistResume, AFailureKeepsTheLastWholeStep) {
  const Words flags{"--momentum", "0.9", "--batches", "60", "--checkpoint-every", "1000"};
  const std::vector<Words> cases{{"--server", "central"}, {}, {"--average", "2"}};
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const std::string name = "failed" + std::to_string(i), whole = name + "-whole";
    SCOPED_TRACE(i);
    train(whole, 3, plus(cases[i], flags));
    std::vector<Process> ranks = begin(name, 3, plus(plus(cases[i], flags), {"--timeout", "2"}));
    await_bytes(folder_ / (name + "/metrics.csv"), 800);
    const bool kills = i == 0;
    ranks[2].kill(kills ? SIGKILL : SIGSTOP);
    for (const std::size_t rank : {0U, 1U}) {
      const Result ended = ranks[rank].wait();
      EXPECT_TRUE(ended.exit == 3 || ended.exit == 4) << ended.exit << ended.err;
      if (rank == 0) {
        EXPECT_NE(ended.err.find("keeps its part of the training after "), std::string::npos)
            << ended.err;
      }
    }
    ranks[2].kill(kills ? SIGKILL : SIGCONT);
    ranks[2].wait();
    const std::string said = train(name, 3, plus(plus(cases[i], flags), {"--resume"}));
    EXPECT_NE(said.find("goes on after "), std::string::npos) << said;
    EXPECT_EQ(trained(name), trained(whole));
  }
}

/// launch starts all ranks again when one is killed or hangs, but not when one says why it fails,
/// or when somebody ends it.
TEST_F(DistResume, LaunchStartsAgain) {
  const Words flags{"--net",       "lenet", "--datadir",          data_.path(), "--batch",   "6",
                    "--threads",   "1",     "--batches",          "150",        "--timeout", "2",
                    "--optimizer", "adam",  "--checkpoint-every", "5"};
  const auto words = [&](const std::string& name, const Words& own, const Words& dist) {
    std::string nodes;
    for (int port : free_ports(3)) nodes += "127.0.0.1:" + std::to_string(port) + "\n";
    write_text(folder_ / (name + ".nodes"), nodes);
    return plus(plus(plus({"launch", "--nodefile", folder_ / (name + ".nodes")}, own), {"--"}),
                plus(plus(flags, dist), {"--job", name, "--logdir", folder_ / name}));
  };
  ASSERT_EQ(run(words("whole", {}, {})).exit, 0);

  Process launch(words("again", {"--restarts", "5"}, {}));
  std::vector<int> signals{SIGKILL, SIGSTOP, SIGKILL};
  for (std::size_t i = 0; i < signals.size(); ++i) {
    const std::string step = std::to_string(10 + 20 * i), name = folder_ / "again";
    await_bytes(checkpoint("again", static_cast<int>(10 + 20 * i), 2), 1);
    const std::vector<int> ranks = processes_with({" dist ", name, "--index " + std::to_string(i)});
    ASSERT_EQ(ranks.size(), 1U) << step;
    ::kill(ranks[0], signals[i]);
  }
  const Result result = launch.wait();
  EXPECT_EQ(result.exit, 0) << result.err;
  for (const char* count : {"(1 of 5)", "(2 of 5)", "(3 of 5)"})
    EXPECT_NE(result.err.find(count), std::string::npos) << result.err;
  EXPECT_EQ(result.err.find("(4 of 5)"), std::string::npos) << result.err;
  EXPECT_EQ(trained("again"), trained("whole"));

  const Result diverged = run(words("huge", {"--restarts", "5"}, {"--lr", "1e30"}));
  EXPECT_EQ(diverged.exit, 1) << diverged.err;
  EXPECT_EQ(diverged.err.find("again"), std::string::npos) << diverged.err;

  Process ended(words("ended", {"--restarts", "5"}, {}));
  await_bytes(folder_ / "ended/metrics.csv", 200);
  ended.kill(SIGINT);
  const Result end = ended.wait();
  EXPECT_EQ(end.exit, 130) << end.err;
  EXPECT_NE(end.err.find("stopped by SIGTERM after "), std::string::npos) << end.err;
  EXPECT_EQ(end.err.find("again"), std::string::npos) << end.err;

  const Result useless = run({"launch", "--nodefile", folder_ / "whole.nodes", "--restarts", "2",
                              "--", "--net", "lenet", "--datadir", data_.path()});
  EXPECT_EQ(useless.exit, 2);
  EXPECT_NE(useless.err.find("--restarts goes on from checkpoints"), std::string::npos)
      << useless.err;
}

/// The ranks get SIGTERM when their launcher is killed, and nobody reads what they say any more.
TEST_F(DistResume, AKilledLauncherCostsNoCheckpoint) {
  const Words flags{"--net",       "lenet", "--datadir", data_.path(), "--batch",      "6",
                    "--threads",   "1",     "--batches", "120",        "--test-every", "1",
                    "--optimizer", "adam"};
  const auto launch = [&](const std::string& name, const Words& more) {
    std::string nodes;
    for (int port : free_ports(3)) nodes += "127.0.0.1:" + std::to_string(port) + "\n";
    write_text(folder_ / (name + ".nodes"), nodes);
    return Process(plus({"launch", "--nodefile", folder_ / (name + ".nodes"), "--"},
                        plus(flags, plus(more, {"--logdir", folder_ / name}))));
  };
  ASSERT_EQ(launch("whole", {}).wait().exit, 0);
  Process killed = launch("killed", {});
  await_bytes(folder_ / "killed/metrics.csv", 800);
  killed.kill(SIGKILL);
  killed.wait();
  for (int i = 0; i < 2000 && !processes_with({" dist ", folder_ / "killed"}).empty(); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  const Result result = launch("killed", {"--resume"}).wait();
  EXPECT_EQ(result.exit, 0) << result.err;
  EXPECT_NE(result.err.find("goes on after "), std::string::npos) << result.err;
  EXPECT_EQ(trained("killed"), trained("whole"));
}

/// A rank that is killed while it writes the first checkpoint leaves none that all have. But none
/// was lost either: the training begins. Where a rank's files are lost, it does not.
TEST_F(DistResume, BeginsWhereTheFirstCheckpointWasNeverWhole) {
  const Words flags{"--momentum", "0.9", "--checkpoint-every", "4", "--batches", "6"};
  train("whole", 3, flags);
  for (const std::string name : {"never", "lost"}) {
    SCOPED_TRACE(name);
    train(name, 3, flags);
    const std::string folder = folder_ / (name + "/checkpoints/");
    for (const int steps : {4, 6}) lose(name, steps, 2);
    // As a rank leaves it that is killed before its first file has its name.
    if (name == "never") write_text(folder + "rank-2.begun", "");
    EXPECT_FALSE(std::filesystem::exists(folder + "rank-0.begun"));
    const bool begins = name == "never";
    const std::string said = train(name, 3, plus(flags, {"--resume"}), begins ? 0 : 1);
    EXPECT_NE(said.find(begins ? "there is no checkpoint yet: the training begins"
                               : "no checkpoint is there on all ranks"),
              std::string::npos)
        << said;
    if (begins) {
      EXPECT_EQ(trained(name), trained("whole"));
    }
  }
}

/// Neither rank 1 nor the keeper of its part can put its later files in their places. The others
/// keep what these have.
TEST_F(DistResume, WhatOneRankCannotWriteCostsNoOlderCheckpoint) {
  for (const std::string server : {"distributed", "central"}) {
    SCOPED_TRACE(server);
    const Words flags{"--optimizer", "adam", "--server", server, "--checkpoint-every", "4"};
    // With a central server, only the server writes files of this network.
    const std::size_t broken = server == "central" ? 0 : 1;
    const std::string name = "in-the-way-" + server;
    train(name + "-whole", 3, plus(flags, {"--batches", "22"}));
    std::vector<std::string> taken;
    for (const int steps : {8, 12, 16, 20}) {
      const std::string own = checkpoint(name, steps, static_cast<int>(broken));
      taken.push_back(own);
      taken.push_back(own.substr(0, own.rfind('.')) + "-copy.safetensors");
    }
    for (const std::string& file : taken) std::filesystem::create_directories(file + "/in the way");
    std::vector<Process> ranks = begin(name, 3, plus(flags, {"--batches", "20"}));
    for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
      const Result result = ranks[rank].wait();
      EXPECT_EQ(result.exit, rank == broken || rank == broken + 1 ? 1 : 0) << result.err;
    }
    for (const std::string& file : taken) std::filesystem::remove_all(file);
    const std::string said = train(name, 3, plus(flags, {"--batches", "22", "--resume"}));
    // A server that has ended with this error has kept its last step besides, and needs no other's.
    const std::string from = server == "central" ? "19" : "4";
    EXPECT_NE(said.find("goes on after " + from + " steps"), std::string::npos) << said;
    EXPECT_EQ(trained(name), trained(name + "-whole"));
  }
}

/// All ranks go on from the newest checkpoint that is whole on each of them.
TEST_F(DistResume, GoesOnFromTheNewestThatAllHave) {
  const Words flags{"--optimizer", "adam", "--checkpoint-every", "3"};
  train("whole", 3, plus(flags, {"--batches", "14"}));
  train("killed", 3, plus(flags, {"--batches", "9"}));
  for (const int steps : {6, 9})
    for (const int rank : {0, 1, 2})
      ASSERT_TRUE(std::filesystem::exists(checkpoint("killed", steps, rank)));
  // Rank 2 was killed while it wrote its last one, and lost the end of it to the power failure; so
  // was the keeper of its part.
  const std::string damaged = read_text(checkpoint("killed", 9, 2)).substr(0, 5000);
  lose("killed", 9, 2);
  write_text(checkpoint("killed", 9, 2), damaged);
  const std::string said = train("killed", 3, plus(flags, {"--batches", "14", "--resume"}));
  EXPECT_NE(said.find("goes on after 6 steps"), std::string::npos) << said;
  EXPECT_EQ(trained("killed"), trained("whole"));
}

TEST_F(DistResume, SaysWhyItCannotGoOn) {
  const Words flags{"--momentum", "0.9", "--checkpoint-every", "4", "--batches", "8"};
  train("run", 2, flags);
  const auto refuses = [&](int exit, int ranks, const Words& more, const std::string& why) {
    for (Process& rank : begin("run", ranks, plus(flags, plus(more, {"--resume"})))) {
      const Result result = rank.wait();
      EXPECT_EQ(result.exit, exit) << result.err;
      EXPECT_NE(result.err.find(why), std::string::npos) << why << "\n" << result.err;
    }
  };
  refuses(2, 2, {"--seed", "7"}, "--resume: ");
  refuses(2, 2, {"--sync", "none"}, "is of another training: it has sync join");
  lose("run", 4, 1);
  lose("run", 8, 0);
  refuses(1, 2, {},
          "no checkpoint is there on all ranks; steps there are on rank 0: 8, 4; on rank 1: 8, 4; "
          "of the one after 8 steps by 2 ranks, no rank has the part of rank 0, nor a copy of it");
  std::filesystem::remove_all(folder_ / "run/checkpoints");
  const std::string said = train("run", 2, plus(flags, {"--resume"}));
  EXPECT_NE(said.find("there is no checkpoint yet: the training begins"), std::string::npos)
      << said;
}

}  // namespace
}  // namespace duplex::tools::testing
