// Trainings whose ranks have a disk each, of which one is lost.
#include <signal.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>

#include "tests/tools/training_runs.h"

namespace duplex::tools::testing {
namespace {

namespace fs = std::filesystem;
using Words = std::vector<std::string>;
using Machines = std::vector<int>;

class LostMachine : public TrainingRuns {
 protected:
  /// The disk of a machine in a training.
  std::string disk(const std::string& name, int machine) const {
    return folder_ / (name + "/m" + std::to_string(machine));
  }
  /// Starts a rank on each of these machines, in the order of ranks. `more` is of `machines` alone.
  std::vector<Process> begin(const std::string& name, const Machines& machines, const Words& more,
                             int batch = 6) const {
    std::string nodes;
    for (const int port : free_ports(static_cast<int>(machines.size())))
      nodes += "127.0.0.1:" + std::to_string(port) + "\n";
    fs::create_directories(folder_ / name);
    write_text(folder_ / (name + ".nodes"), nodes);
    std::vector<Process> processes;
    for (std::size_t rank = 0; rank < machines.size(); ++rank)
      processes.emplace_back(
          arguments("dist", name + "/m" + std::to_string(machines[rank]), batch,
                    plus(more, {"--job", name, "--timeout", "20", "--nodefile",
                                folder_ / (name + ".nodes"), "--index", std::to_string(rank)})));
    return processes;
  }
  /// Runs them to their end. Returns what all of them said.
  std::string train(const std::string& name, const Machines& machines, const Words& more,
                    int exit = 0, int batch = 6) const {
    std::string said;
    for (Process& rank : begin(name, machines, more, batch)) {
      const Result result = rank.wait();
      EXPECT_EQ(result.exit, exit) << result.err;
      said += result.out + result.err;
    }
    return said;
  }
  /// The same on disks that all ranks share.
  std::string train_together(const std::string& name, int ranks, const Words& more,
                             int batch = 6) const {
    std::string said;
    for (Process& rank : start(name, ranks, batch, more, true)) {
      const Result result = rank.wait();
      EXPECT_EQ(result.exit, 0) << result.err;
      said += result.err;
    }
    return said;
  }
  Weights trained(const std::string& directory) const {
    return read_weights(directory + "/checkpoint.safetensors");
  }
  void copy(const std::string& from, const std::string& to) const {
    fs::copy(folder_ / from, folder_ / to, fs::copy_options::recursive);
  }
  static std::string checkpoint(const std::string& disk, int steps, const std::string& rank) {
    std::string digits = std::to_string(steps);
    digits.insert(0, 10 - digits.size(), '0');
    return disk + "/checkpoints/step-" + digits + "/rank-" + rank + ".safetensors";
  }
  /// Waits until a disk has such a file ("1" or "0-copy") of a checkpoint after 10 steps or more;
  /// the last two stay.
  static void await_checkpoint(const std::string& disk, const std::string& rank) {
    for (int i = 0; i < 4000; ++i) {
      std::error_code not_yet;
      for (const auto& step : fs::directory_iterator(disk + "/checkpoints", not_yet))
        if (step.path().filename().string() >= "step-0000000010" &&
            fs::exists(step.path() / ("rank-" + rank + ".safetensors")))
          return;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    ADD_FAILURE() << disk << " has no checkpoint of rank " << rank;
  }
  /// The steps that a training said it goes on after.
  static int steps_in(const std::string& said) {
    const std::string words = "goes on after ";
    const std::size_t at = said.find(words);
    if (at == std::string::npos) return -1;
    return std::atoi(said.c_str() + at + words.size());
  }
};

TEST_F(LostMachine, TheOthersGoOnToTheBitsThatAllFilesGive) {
  for (const Words& optimiser :
       {Words{"--momentum", "0.9"}, Words{"--optimizer", "adam", "--shards", "tensors"}}) {
    const Words flags = plus(optimiser, {"--checkpoint-every", "4"});
    const Words first = plus(flags, {"--batches", "8"}),
                second = plus(flags, {"--batches", "12", "--resume"});
    const std::string common = "common" + optimiser[1], apart = "apart" + optimiser[1];
    train_together(common, 3, first);
    train_together(common, 2, second);
    train(apart, {0, 1, 2}, first);
    for (const int lost : {0, 1, 2}) {
      const std::string name = apart + "-" + std::to_string(lost);
      SCOPED_TRACE(name);
      copy(apart, name);
      fs::remove_all(disk(name, lost));
      Machines left{0, 1, 2};
      left.erase(left.begin() + lost);
      const std::string said = train(name, left, second);
      EXPECT_NE(said.find("goes on after 8 steps, which 3 ranks trained, with 2"),
                std::string::npos)
          << said;
      EXPECT_EQ(trained(disk(name, left[0])), trained(folder_ / common));
      // Files that the ranks sent each other are removed like those that they wrote.
      for (const int machine : left) {
        std::size_t there = 0;
        for (const auto& entry : fs::directory_iterator(disk(name, machine) + "/checkpoints"))
          there += entry.is_directory() ? 1 : 0;
        EXPECT_LE(there, 3U);
      }
    }
  }
}

/// All ranks are killed, one never comes back.
TEST_F(LostMachine, WhatWasKilledGoesOnWithoutOne) {
  const Words flags{"--optimizer", "adam", "--checkpoint-every", "5"};
  std::vector<Process> ranks = begin("killed", {0, 1, 2}, plus(flags, {"--batches", "3000"}));
  for (const int owner : {0, 1, 2}) {
    const std::string own = std::to_string(owner);
    await_checkpoint(disk("killed", owner), own);
    await_checkpoint(disk("killed", (owner + 1) % 3), own + "-copy");
  }
  for (Process& rank : ranks) rank.kill(SIGKILL);
  for (Process& rank : ranks) rank.wait();
  fs::remove_all(disk("killed", 1));
  // The length may change, so the others are to go on a little.
  std::size_t most = 0;
  for (const int machine : {0, 2})
    for (const auto& entry : fs::directory_iterator(disk("killed", machine) + "/checkpoints"))
      most = std::max<std::size_t>(most, std::stoul(entry.path().filename().string().substr(5)));
  const std::string end = std::to_string(most + 3);
  const std::string said = train("killed", {2, 0}, plus(flags, {"--batches", end, "--resume"}));
  const int steps = steps_in(said);
  ASSERT_GE(steps, 10) << said;
  train_together("common", 3, plus(flags, {"--batches", std::to_string(steps)}));
  train_together("common", 2, plus(flags, {"--batches", end, "--resume"}));
  EXPECT_EQ(trained(disk("killed", 2)), trained(folder_ / "common"));
}

/// A rank whose disk is new gets its part from whoever kept a copy.
TEST_F(LostMachine, ANewDiskGetsItsPartBack) {
  const std::vector<std::pair<Words, Machines>> cases{
      {{"--momentum", "0.9"}, {0, 1, 2}},
      {{"--optimizer", "adam", "--sync", "split", "--overlap", "off"}, {1}},
      {{"--average", "2"}, {0, 2}},
      {{"--wire", "bf16", "--optimizer", "adam"}, {1}},
      {{"--server", "central", "--optimizer", "adam", "--semaphore", "on"}, {0, 1}},
      {{}, {2}}};
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const Words flags = plus(cases[i].first, {"--checkpoint-every", "4"});
    const std::string name = "case" + std::to_string(i);
    train_together(name + "-whole", 3, plus(flags, {"--batches", "12"}));
    train(name, {0, 1, 2}, plus(flags, {"--batches", "8"}));
    for (const int lost : cases[i].second) {
      const std::string again = name + "-" + std::to_string(lost);
      SCOPED_TRACE(again);
      copy(name, again);
      fs::remove_all(disk(again, lost));
      const std::string said =
          train(again, {0, 1, 2}, plus(flags, {"--batches", "12", "--resume"}));
      EXPECT_NE(said.find("goes on after 8 steps"), std::string::npos) << said;
      const bool central = flags[0] == "--server";
      EXPECT_EQ(trained(disk(again, central ? 1 : 0)), trained(folder_ / (name + "-whole")));
    }
  }
}

/// A network with running statistics, of which each worker has its own.
TEST_F(LostMachine, RunningStatisticsComeBack) {
  const Words net{"--net", network_with_statistics(), "--momentum",
                  "0.9",   "--checkpoint-every",      "2"};
  train_together("whole", 2, plus(net, {"--batches", "4"}), 2);
  train("parts", {0, 1}, plus(net, {"--batches", "2"}), 0, 2);
  fs::remove_all(disk("parts", 0));
  train("parts", {0, 1}, plus(net, {"--batches", "4", "--resume"}), 0, 2);
  EXPECT_EQ(trained(disk("parts", 0)), trained(folder_ / "whole"));
}

/// The server's copy is at the first worker, whose machine becomes the server's.
TEST_F(LostMachine, ACentralServerBeginsOnTheMachineWithItsCopy) {
  const Words flags{"--server", "central", "--momentum", "0.9", "--checkpoint-every", "4"};
  train_together("common", 4, plus(flags, {"--batches", "8"}));
  train_together("common", 3, plus(flags, {"--batches", "12", "--resume"}));
  train("apart", {0, 1, 2, 3}, plus(flags, {"--batches", "8"}));
  fs::remove_all(disk("apart", 0));
  // The nodefile is that of all four.
  const std::string nodes = "127.0.0.1:" + std::to_string(free_ports(1)[0]) + "\n";
  write_text(folder_ / "all.nodes", "192.0.2.1\n" + nodes + "localhost\n127.0.0.1:9\n");
  std::vector<Process> ranks;
  for (const int rank : {0, 1, 2})
    ranks.emplace_back(arguments(
        "dist", "apart/m" + std::to_string(rank + 1), 6,
        plus(flags, {"--batches", "12", "--resume", "--timeout", "20", "--nodefile",
                     folder_ / "all.nodes", "--without", "0", "--index", std::to_string(rank)})));
  for (Process& rank : ranks) {
    const Result result = rank.wait();
    EXPECT_EQ(result.exit, 0) << result.err;
    EXPECT_NE(result.err.find("all.nodes without 0)"), std::string::npos) << result.err;
  }
  EXPECT_EQ(trained(disk("apart", 2)), trained(folder_ / "common"));
}

/// A part is lost whose owner and keeper are.
TEST_F(LostMachine, TwoNeighboursAreTooMany) {
  const Words flags{"--momentum", "0.9", "--checkpoint-every", "4"};
  train("run", {0, 1, 2, 3}, plus(flags, {"--batches", "4"}));
  for (const int lost : {1, 2}) fs::remove_all(disk("run", lost));
  for (const Machines& left : {Machines{0, 3}, Machines{0, 1, 2, 3}}) {
    const std::string said = train("run", left, plus(flags, {"--batches", "8", "--resume"}), 1);
    EXPECT_NE(said.find("no checkpoint is there on all ranks"), std::string::npos) << said;
    EXPECT_NE(said.find("of the one after 4 steps by 4 ranks, no rank has the part of rank 1, nor "
                        "a copy of it"),
              std::string::npos)
        << said;
  }
  // Two that are no neighbours are not.
  train("other", {0, 1, 2, 3}, plus(flags, {"--batches", "4"}));
  for (const int lost : {1, 3}) fs::remove_all(disk("other", lost));
  const std::string said = train("other", {0, 2}, plus(flags, {"--batches", "8", "--resume"}));
  EXPECT_EQ(steps_in(said), 4) << said;
}

TEST_F(LostMachine, ADamagedCopyIsPassedOver) {
  const Words flags{"--momentum", "0.9", "--checkpoint-every", "4"};
  train("run", {0, 1, 2}, plus(flags, {"--batches", "8"}));
  fs::remove_all(disk("run", 1));
  const auto damage = [&](int steps) {
    const std::string path = checkpoint(disk("run", 2), steps, "1-copy");
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    ASSERT_TRUE(file) << path;
    file.seekg(-10, std::ios::end);
    const char byte = static_cast<char>(file.get());
    file.seekp(-10, std::ios::end);
    file.put(static_cast<char>(~byte));
  };
  damage(8);
  copy("run", "worse");
  std::string said = train("run", {0, 2}, plus(flags, {"--batches", "12", "--resume"}));
  EXPECT_EQ(steps_in(said), 4) << said;
  EXPECT_NE(said.find("rank-1-copy.safetensors"), std::string::npos) << said;
  EXPECT_NE(said.find("it is left out"), std::string::npos) << said;
  const std::string older = checkpoint(disk("worse", 2), 4, "1-copy");
  fs::resize_file(older, fs::file_size(older) / 2);
  said = train("worse", {0, 2}, plus(flags, {"--batches", "12", "--resume"}), 1);
  EXPECT_NE(said.find("of the one after 8 steps by 3 ranks, no rank has the part of rank 1"),
            std::string::npos)
      << said;
}

/// With plain SGD the others have all of a killed rank's part, of the very step that it died in.
TEST_F(LostMachine, WithoutAStateNothingIsLostWhereARankIsKilled) {
  const Words flags{"--batches", "40", "--checkpoint-every", "1000"};
  train_together("whole", 3, flags);
  std::string said;
  // A rank that is killed while it sends its weights leaves some of two steps.
  for (int i = 0; i < 5 && steps_in(said) < 0; ++i) {
    const std::string name = "killed" + std::to_string(i);
    std::vector<Process> ranks = begin(name, {0, 1, 2}, flags);
    await_bytes(disk(name, 0) + "/metrics.csv", 400);
    ranks[1].kill(SIGKILL);
    for (Process& rank : ranks) rank.wait();
    fs::remove_all(disk(name, 1));
    said = train(name, {0, 1, 2}, plus(flags, {"--resume"}));
    EXPECT_EQ(trained(disk(name, 0)), trained(folder_ / "whole"));
  }
  EXPECT_GT(steps_in(said), 0) << said;
}

/// A machine that ssh reaches no more is left out when that has failed twice.
TEST_F(LostMachine, LaunchGoesOnWithoutAMachineThatDoesNotAnswer) {
  const int port = free_ports(1)[0];
  const std::string gone = "198.51.100.2";
  write_text(folder_ / "nodes",
             "127.0.0.1:" + std::to_string(port) + "\n198.51.100.1\n" + gone + "\n198.51.100.3\n");
  // Each machine has a disk of its own.
  write_text(
      folder_ / "ssh",
      "#!/bin/sh\nhost=$3\nshift 3\n[ ! -e '" + (folder_ / "dead-") +
          "'$host ] || { echo \"ssh: connect to host $host: No route to host\" >&2; exit "
          "255; }\nexec sh -c \"$(printf '%s' \"$*\" | sed \"s#--logdir [^ ]*#&-$host#\")\"\n");
  ASSERT_EQ(::chmod((folder_ / "ssh").c_str(), 0700), 0);
  const Words flags{"--net",      "lenet", "--datadir",          data_.path(),
                    "--batch",    "6",     "--threads",          "1",
                    "--timeout",  "20",    "--server",           "central",
                    "--momentum", "0.9",   "--checkpoint-every", "5"};
  const auto words = [&](const Words& own, const Words& more) {
    return plus(
        plus(plus({"launch", "--nodefile", folder_ / "nodes", "--ssh", folder_ / "ssh"}, own),
             {"--"}),
        plus(flags, more));
  };
  Process launch(words({"--restarts", "5"}, {"--batches", "250", "--logdir", folder_ / "run"}));
  await_checkpoint(folder_ / "run-198.51.100.1", "0-copy");
  write_text(folder_ / ("dead-" + gone), "");
  const std::vector<int> ranks = processes_with({" dist ", "run-" + gone});
  ASSERT_FALSE(ranks.empty());
  for (const int each : ranks) ::kill(each, SIGKILL);
  const Result result = launch.wait();
  EXPECT_EQ(result.exit, 0) << result.err;
  EXPECT_NE(result.err.find("launch: " + gone +
                            " could not be reached 2 times in a row: the run goes on with the 3 "
                            "ranks that are left (--without 2)"),
            std::string::npos)
      << result.err;
  EXPECT_NE(result.err.find("(3 of 5)"), std::string::npos) << result.err;
  EXPECT_EQ(result.err.find("(4 of 5)"), std::string::npos) << result.err;
  EXPECT_NE(result.err.find(" steps, which 4 ranks trained, with 3"), std::string::npos)
      << result.err;
  const int steps = steps_in(result.err);
  train_together("common", 4,
                 {"--server", "central", "--momentum", "0.9", "--checkpoint-every", "5",
                  "--batches", std::to_string(steps)});
  train_together("common", 3,
                 {"--server", "central", "--momentum", "0.9", "--checkpoint-every", "5",
                  "--batches", "250", "--resume"});
  EXPECT_EQ(trained(folder_ / "run-198.51.100.1"), trained(folder_ / "common"));

  // Where every worker's state is needed, all are tried again.
  const Result needed = run(words(
      {"--restarts", "2"}, {"--batches", "5", "--average", "5", "--logdir", folder_ / "needed"}));
  EXPECT_EQ(needed.exit, 255) << needed.err;
  EXPECT_NE(needed.err.find("could not be reached 2 times in a row, and the run needs all: with "
                            "--average every worker's optimiser has a state of its own"),
            std::string::npos)
      << needed.err;
  // So it is where the network is cut.
  write_text(folder_ / "two", "127.0.0.1:" + std::to_string(port) + "\n" + gone + "\n");
  const Result cut =
      run(plus(plus({"launch", "--nodefile", folder_ / "two", "--ssh", folder_ / "ssh",
                     "--restarts", "2", "--"},
                    flags),
               {"--batches", "5", "--strategy", "pipeline", "--logdir", folder_ / "cut"}));
  EXPECT_EQ(cut.exit, 255) << cut.err;
  EXPECT_NE(cut.err.find("the run needs all: no rank keeps a copy of another's part where the "
                         "network is cut"),
            std::string::npos)
      << cut.err;
  const Result printed = run(plus(
      {"launch", "--nodefile", folder_ / "nodes", "--without", "2,3", "--print-commands", "--"},
      flags));
  EXPECT_EQ(std::count(printed.out.begin(), printed.out.end(), '\n'), 2) << printed.out;
  EXPECT_NE(printed.out.find("--index 1 --without 2,3"), std::string::npos) << printed.out;
}

}  // namespace
}  // namespace duplex::tools::testing
