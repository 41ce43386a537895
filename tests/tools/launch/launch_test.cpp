// Tests duplex launch, whose ranks begin and end together, and launch stop, which ends ranks
// however they were started.
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "tests/tools/training_runs.h"
#include "tools/launch/children.h"

namespace duplex::tools::testing {
namespace {

class Launch : public TrainingRuns {
 protected:
  /// Starts a rank by hand. It ends by itself in half a minute.
  Process rank(const std::string& nodefile, int index) const {
    const std::string name = std::filesystem::path(nodefile).filename().string();
    return Process(rank_words(nodefile, index, folder_ / ("by-hand-" + name)));
  }

  static std::vector<std::string> rank_words(const std::string& nodefile, int index,
                                             const std::string& logdir) {
    return {"dist", "--net",      "lenet",  "--device", "replay:0.01",         "--batches",
            "3000", "--nodefile", nodefile, "--index",  std::to_string(index), "--logdir",
            logdir, "--timeout",  "30"};
  }

  std::string nodefile(const std::string& name, int ranks) const {
    std::string lines;
    for (const int port : free_ports(ranks)) lines += "127.0.0.1:" + std::to_string(port) + "\n";
    write_text(folder_ / name, lines);
    return folder_ / name;
  }

  Result stop(const std::string& nodefile) const {
    return run({"launch", "stop", "--nodefile", nodefile});
  }

  /// Waits until `launch stop` would find `count` ranks of the nodefile, for 20 seconds at most. By
  /// then they have read their flags, and wait for one another.
  static void await_records(const std::string& nodefile, std::size_t count) {
    const std::string folder = "/tmp/duplex-" + std::to_string(::geteuid());
    for (int i = 0; i < 2000; ++i) {
      std::size_t found = 0;
      std::error_code gone;
      for (const auto& entry : std::filesystem::directory_iterator(folder, gone)) {
        const std::string text = read_text(entry.path());
        found += text.find(nodefile + '\0') != std::string::npos;
      }
      if (found == count) return;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    ADD_FAILURE() << "there are never " << count << " records of " << nodefile;
  }
};

TEST_F(Launch, StartsAllRanksAndEndsThemTogether) {
  write_two_nodes();
  std::filesystem::create_directory(folder_ / "tmp");
  const char* usual = std::getenv("TMPDIR");
  const std::string before = usual == nullptr ? "/tmp" : usual;
  ::setenv("TMPDIR", (folder_ / "tmp").c_str(), 1);
  const auto launch = [&](const std::vector<std::string>& dist) {
    return run(plus({"launch", "--nodefile", folder_ / "nodes", "--", "--net", "lenet", "--logdir",
                     folder_ / "launched", "--job", "launch", "--timeout", "20"},
                    dist));
  };
  const Result good = launch({"--device", "replay:0.01", "--batches", "5"});
  EXPECT_EQ(good.exit, 0) << good.err;
  EXPECT_NE(good.out.find("[0] replay"), std::string::npos) << good.out;
  // The ranks of this run alone have its key, and nothing of it stays.
  EXPECT_NE(good.err.find("[1] rank 1: has the cluster key "), std::string::npos) << good.err;
  EXPECT_EQ(good.err.find("without a key"), std::string::npos) << good.err;
  for (const auto& entry : std::filesystem::directory_iterator(folder_ / "tmp"))
    ADD_FAILURE() << entry.path() << " is left";
  ::setenv("TMPDIR", before.c_str(), 1);
  EXPECT_NE(good.err.find("[1] rank 1: rank 0"), std::string::npos) << good.err;
  EXPECT_TRUE(std::filesystem::exists(folder_ / "launched/rank-1.json"));

  const Result bad = launch({"--datadir", folder_ / "nowhere"});
  EXPECT_EQ(bad.exit, 1) << bad.err;
  EXPECT_NE(bad.err.find("launch: rank "), std::string::npos) << bad.err;
  EXPECT_NE(bad.err.find("nowhere"), std::string::npos) << bad.err;

  EXPECT_EQ(launch({"--index", "0"}).exit, 2);
  write_text(folder_ / "far", "127.0.0.1\n192.0.2.1\n");
  const Result commands =
      run({"launch", "--nodefile", folder_ / "far", "--print-commands", "--", "--net", "le net"});
  EXPECT_EQ(commands.exit, 0) << commands.err;
  EXPECT_EQ(std::count(commands.out.begin(), commands.out.end(), '\n'), 2);
  EXPECT_NE(commands.out.find("\nssh -o BatchMode=yes 192.0.2.1 "), std::string::npos)
      << commands.out;
  EXPECT_NE(commands.out.find("'le net'"), std::string::npos) << commands.out;
  // All ranks share the directory that the user has not named.
  const std::string begin = "runs/dist-le net-";
  const std::size_t first = commands.out.find(begin), second = commands.out.rfind(begin);
  ASSERT_NE(first, std::string::npos) << commands.out;
  EXPECT_NE(first, second) << commands.out;
  const std::size_t length = begin.size() + 15;  // The time: 20261125-041100.
  EXPECT_EQ(commands.out.substr(first, length), commands.out.substr(second, length));
}

/// A user who has not the key of the run, on the same machine, is a stranger.
TEST_F(Launch, ARunOnThisMachineHasAKeyOfItsOwn) {
  write_two_nodes();
  const std::vector<std::string> flags{"--net",     "lenet", "--device", "replay:0.01",
                                       "--batches", "5",     "--job",    "keyed"};
  // The intruder is rank 1 before the real one comes, without a key.
  Process intruder(plus(plus({"dist"}, flags), {"--nodefile", folder_ / "nodes", "--index", "1",
                                                "--timeout", "4", "--logdir", folder_ / "other"}));
  const Result result = run(plus({"launch", "--nodefile", folder_ / "nodes", "--"},
                                 plus(flags, {"--timeout", "20", "--logdir", folder_ / "keyed"})));
  EXPECT_EQ(result.exit, 0) << result.err;
  const Result turned_away = intruder.wait();
  EXPECT_EQ(turned_away.exit, 4) << turned_away.err;
}

TEST_F(Launch, LeavesNoDirectoryOfARunThatNeverBegan) {
  const auto directories = [] {
    std::size_t count = 0;
    if (!std::filesystem::exists("runs")) return count;
    for (const auto& entry : std::filesystem::directory_iterator("runs"))
      count += entry.path().filename().string().rfind("dist-alexnet-", 0) == 0;
    return count;
  };
  const std::size_t before = directories();
  write_two_nodes();
  const Result bad = run({"launch", "--nodefile", folder_ / "nodes", "--", "--net", "alexnet",
                          "--datadir", folder_ / "nowhere", "--timeout", "20"});
  EXPECT_EQ(bad.exit, 1) << bad.err;
  EXPECT_EQ(directories(), before);
}

TEST_F(Launch, CtrlCAndStopEndAllRanks) {
  const auto launched = [&](const std::string& name) {
    write_two_nodes();
    Process launch({"launch", "--nodefile", folder_ / "nodes", "--", "--net", "lenet", "--logdir",
                    folder_ / name, "--device", "replay:0.01", "--batches", "100000"});
    await_bytes(folder_ / (name + "/metrics.csv"), 500);
    return launch;
  };
  const std::string words = "--nodefile " + (folder_ / "nodes");
  for (const int signal : {SIGINT, SIGTERM}) {
    Process interrupted = launched("interrupted" + std::to_string(signal));
    EXPECT_EQ(processes_with({" dist ", words}).size(), 2U);
    interrupted.kill(signal);
    const Result result = interrupted.wait();
    EXPECT_EQ(result.exit, 128 + signal);
    EXPECT_NE(result.err.find("launch: interrupted"), std::string::npos) << result.err;
    EXPECT_EQ(result.err.find("ended with exit code"), std::string::npos) << result.err;
    EXPECT_EQ(processes_with({" dist ", words}).size(), 0U);
  }

  Process stopped = launched("stopped");
  EXPECT_EQ(processes_with({" dist ", words}).size(), 2U);
  const Result stop = this->stop(folder_ / "nodes");
  EXPECT_EQ(processes_with({" dist ", words}).size(), 0U);
  EXPECT_EQ(stop.exit, 0) << stop.err;
  EXPECT_EQ(stop.out, "launch: stopped 2 ranks on 127.0.0.1\n");
  EXPECT_EQ(stopped.wait().exit, 128 + SIGTERM);
}

/// A rank that loses another to `launch stop` may end, and be noticed, first.
TEST(RunTogether, SomebodyWhoEndsARankIsToldFromALostPeer) {
  const auto ended = [](const std::vector<std::string>& scripts) {
    std::vector<std::vector<std::string>> commands;
    for (const std::string& script : scripts) commands.push_back({"sh", "-c", script});
    return run_together(commands, {[](std::size_t) { return true; }, {}});
  };
  const TogetherResult stopped = ended({"exit 3", "sleep 0.2; kill -TERM $$"});
  EXPECT_EQ(stopped.code, 128 + SIGTERM);
  EXPECT_FALSE(stopped.lost);
  const TogetherResult killed = ended({"exit 3", "sleep 0.2; kill -KILL $$"});
  EXPECT_EQ(killed.code, 3);
  EXPECT_TRUE(killed.lost);
  const TogetherResult refused = ended({"exit 1", "sleep 0.2; kill -TERM $$"});
  EXPECT_EQ(refused.code, 1);
  EXPECT_FALSE(refused.lost);
}

TEST_F(Launch, StopEndsARankThatWaitsForItsPeersAndHasARelativeNodefile) {
  const std::string nodes = nodefile("nodes", 2), others = nodefile("others", 1);
  const std::string relative = std::filesystem::relative(nodes).string();
  ASSERT_NE(relative[0], '/');
  Process waiting = rank("./" + relative, 0), other = rank(others, 0);
  await_records(nodes, 1);
  await_records(others, 1);
  const Result result = stop(nodes);
  EXPECT_EQ(result.exit, 0) << result.err;
  EXPECT_EQ(result.out, "launch: stopped 1 rank on 127.0.0.1\n");
  EXPECT_EQ(waiting.wait().exit, 128 + SIGTERM);
  EXPECT_EQ(processes_with({" dist ", others}).size(), 1U);  // These have another nodefile.

  const Result again = stop(nodes);
  EXPECT_EQ(again.exit, 0) << again.err;
  EXPECT_EQ(again.out, "launch: nothing runs with " + nodes + " on 127.0.0.1\n");
  EXPECT_EQ(processes_with({" dist ", others}).size(), 1U);
  EXPECT_EQ(stop(others).exit, 0);
  EXPECT_EQ(other.wait().exit, 128 + SIGTERM);
}

/// A plan may have made another nodefile, which only launch knows.
TEST_F(Launch, StopFindsRanksByTheNodefileThatLaunchWasGiven) {
  const std::string given = nodefile("given", 2), planned = nodefile("planned", 2);
  Process waiting(plus(rank_words(planned, 0, folder_ / "run"), {"--launch-nodefile", given}));
  await_records(given, 1);
  const Result result = stop(given);
  EXPECT_EQ(result.exit, 0) << result.err;
  EXPECT_EQ(result.out, "launch: stopped 1 rank on 127.0.0.1\n");
  EXPECT_EQ(waiting.wait().exit, 128 + SIGTERM);
}

/// ssh may leave a connection in the background (ControlPersist) that holds its standard error.
TEST_F(Launch, EndsWhereAConnectionIsLeftOpen) {
  const std::string nodes = nodefile("nodes", 1);
  write_text(nodes, read_text(nodes) + "198.51.100.1\n");
  write_text(folder_ / "ssh", "#!/bin/sh\nshift 3\nsleep 60 > /dev/null &\necho $! > '" +
                                  (folder_ / "left") + "'\nexec sh -c \"$*\"\n");
  ASSERT_EQ(::chmod((folder_ / "ssh").c_str(), 0700), 0);
  const auto begin = std::chrono::steady_clock::now();
  const Result result = run({"launch",    "--nodefile", nodes,     "--ssh",    folder_ / "ssh",
                             "--",        "--net",      "lenet",   "--device", "replay:0.001",
                             "--batches", "3",          "--batch", "4",        "--threads",
                             "1",         "--timeout",  "20",      "--logdir", folder_ / "run"});
  const int left = std::stoi(read_text(folder_ / "left"));
  EXPECT_EQ(::kill(left, 0), 0) << "the connection was to be open still";
  ::kill(left, SIGKILL);
  EXPECT_EQ(result.exit, 0) << result.err;
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(50));
}

TEST_F(Launch, StopKillsWhatDoesNotObey) {
  const std::string nodes = nodefile("nodes", 1);
  Process deaf = rank(nodes, 0);
  await_records(nodes, 1);
  deaf.kill(SIGSTOP);
  const Result result = stop(nodes);
  EXPECT_EQ(result.exit, 0) << result.err;
  EXPECT_EQ(result.out, "launch: stopped 1 rank on 127.0.0.1\n");
  EXPECT_EQ(deaf.wait().exit, 128 + SIGKILL);
}

TEST_F(Launch, StopRunsThisProgramOnOtherMachines) {
  write_text(folder_ / "far", "127.0.0.1\nlocalhost\n198.51.100.7 slots=2\n203.0.113.7\n");
  const auto stop = [&](const std::string& script, const std::vector<std::string>& more) {
    write_text(folder_ / "ssh", "#!/bin/sh\n" + script);
    EXPECT_EQ(::chmod((folder_ / "ssh").c_str(), 0700), 0);
    return run(
        plus({"launch", "stop", "--nodefile", folder_ / "far", "--ssh", folder_ / "ssh"}, more));
  };
  const Result commands = stop("", {"--print-commands"});
  EXPECT_EQ(commands.exit, 0) << commands.err;
  EXPECT_EQ(std::count(commands.out.begin(), commands.out.end(), '\n'), 3) << commands.out;
  EXPECT_NE(commands.out.find("\n" + (folder_ / "ssh") + " -o BatchMode=yes 203.0.113.7 'sh -c "),
            std::string::npos)
      << commands.out;
  EXPECT_NE(commands.out.find("launch stop --here 203.0.113.7 --nodefile " + (folder_ / "far")),
            std::string::npos)
      << commands.out;

  // A shell runs the words behind the host, as sshd does.
  const Result done = stop("shift 3; exec sh -c \"$*\"\n", {});
  EXPECT_EQ(done.exit, 0) << done.err;
  for (const char* host : {"127.0.0.1", "198.51.100.7", "203.0.113.7"}) {
    EXPECT_NE(done.out.find("with " + (folder_ / "far") + " on " + host + "\n"), std::string::npos)
        << done.out;
  }
  const Result missed = stop("[ $3 = 198.51.100.7 ] || exit 255\n", {});
  EXPECT_EQ(missed.exit, 1);
  EXPECT_NE(missed.err.find("launch: 203.0.113.7 could not be reached"), std::string::npos)
      << missed.err;
  EXPECT_EQ(missed.err.find("198.51.100.7"), std::string::npos) << missed.err;

  EXPECT_EQ(run({"launch", "--here", "x", "--nodefile", folder_ / "far"}).exit, 2);
}

TEST_F(Launch, ARankWithoutARecordTrainsAndSaysSo) {
  // Runs in a mount namespace of its own, with a /tmp that is made here, in which the folder is
  // open to all.
  const std::string name = "/duplex-" + std::to_string(::geteuid());
  const std::string own = folder_ / "tmp", records = "/tmp" + name;
  const auto in_own = [&](const std::string& script, const std::vector<std::string>& words) {
    const std::string mounted = "exec 3< \"$DUPLEX\" && mount --bind \"$0\" /tmp && " + script;
    return Process(plus({"-r", "-m", "sh", "-c", mounted, own}, words), "unshare").wait();
  };
  const std::string program = "exec /proc/self/fd/3 \"$@\"";
  std::filesystem::create_directories(own + name);
  if (in_own("true", {}).exit != 0) GTEST_SKIP() << "mount namespaces may not be made here";
  ASSERT_EQ(::chmod((own + name).c_str(), 0755), 0);
  write_text(own + "/nodes", "127.0.0.1:" + std::to_string(free_ports(1)[0]) + "\n");
  std::vector<std::string> words = rank_words("/tmp/nodes", 0, "/tmp/run");
  *std::find(words.begin(), words.end(), "3000") = "5";
  const Result trained = in_own(program, words);
  EXPECT_EQ(trained.exit, 0) << trained.err;
  EXPECT_NE(trained.err.find("rank 0: " + records + " is accessible to others"), std::string::npos)
      << trained.err;
  EXPECT_TRUE(std::filesystem::exists(own + "/run/summary.json"));
  const Result stop =
      in_own(program, {"launch", "stop", "--here", "x", "--nodefile", "/tmp/nodes"});
  EXPECT_EQ(stop.exit, 1);
  EXPECT_NE(stop.err.find(records + " is accessible to others"), std::string::npos) << stop.err;
}

TEST_F(Launch, StopSaysOfWhatItCannotReach) {
  const std::vector<std::string> own{"--map-current-user", "--pid", "--fork", "--mount-proc"};
  if (Process(plus(own, {"true"}), "unshare").wait().exit != 0) {
    GTEST_SKIP() << "pid namespaces may not be made here";
  }
  const std::string nodes = nodefile("nodes", 1);
  Process outside = rank(nodes, 0);
  await_records(nodes, 1);
  const Result result =
      Process(plus(own, {std::getenv("DUPLEX"), "launch", "stop", "--nodefile", nodes}), "unshare")
          .wait();
  EXPECT_EQ(result.exit, 1);
  EXPECT_EQ(result.out, "");
  EXPECT_NE(result.err.find("rank 0 on 127.0.0.1 still runs: it belongs to another pid namespace"),
            std::string::npos)
      << result.err;
  EXPECT_EQ(processes_with({" dist ", nodes}).size(), 1U);
  EXPECT_EQ(stop(nodes).exit, 0);
}

}  // namespace
}  // namespace duplex::tools::testing
