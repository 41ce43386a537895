// Tests how runs of several ranks begin and end: replays and transport, and ranks that differ, are
// lost or never come.
#include <signal.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <sstream>

#include "core/device.h"
#include "net/wire/listener.h"
#include "tests/tools/training_runs.h"

namespace duplex::tools::testing {
namespace {

using Ranks = TrainingRuns;

TEST_F(Ranks, AsynchronousWorkerThatDiesStopsNobody) {
  std::vector<Process> ranks =
      start("survive", 4, 2, {"--sync", "none", "--server", "central", "--epochs", "15"});
  await_bytes(folder_ / "survive/metrics.csv", 500);
  ranks[3].kill(SIGKILL);
  EXPECT_EQ(ranks[3].wait().exit, 128 + SIGKILL);
  for (std::size_t rank : {0U, 1U, 2U}) {
    const Result result = ranks[rank].wait();
    EXPECT_EQ(result.exit, 0) << result.err;
    if (rank == 0) {
      EXPECT_NE(result.err.find("going on without rank 3"), std::string::npos) << result.err;
    }
  }
}

TEST_F(Ranks, ReplayWaitsWhereItWouldCompute) {
  write_two_nodes();
  const auto rank = [&](const char* index) {
    return Process({"dist", "--net", "lenet", "--device", "replay:0.05", "--batches", "12",
                    "--nodefile", folder_ / "nodes", "--index", index, "--logdir",
                    folder_ / "replay", "--job", "replay", "--timeout", "20"});
  };
  Process first = rank("0"), second = rank("1");
  const Result result = first.wait(), other = second.wait();
  EXPECT_EQ(result.exit, 0) << result.err;
  EXPECT_EQ(other.exit, 0) << other.err;
  EXPECT_NE(result.out.find("nothing was computed"), std::string::npos) << result.out;
  EXPECT_NE(read_text(folder_ / "replay/config.json").find("\"addresses\""), std::string::npos);
  EXPECT_NE(read_text(folder_ / "replay/config.json").find("\"replayed\": true"),
            std::string::npos);
  // A wait is never shorter than the profile says; how much longer it is depends on the machine.
  std::istringstream rows(read_text(folder_ / "replay/metrics.csv"));
  std::string row;
  std::getline(rows, row);
  int steps = 0;
  for (; std::getline(rows, row); ++steps) {
    std::vector<std::string> cells;
    std::istringstream line(row);
    for (std::string cell; std::getline(line, cell, ',');) cells.push_back(cell);
    ASSERT_EQ(cells.size(), 9U) << row;
    EXPECT_EQ(cells[2], "") << row;
    EXPECT_GE(std::stod(cells[4]), 0.0499) << row;
  }
  EXPECT_EQ(steps, 12);
}

TEST_F(Ranks, ReplayWantsAProfileThatFits) {
  write_two_nodes();
  const auto rank = [&](const std::string& device, const char* batch = "8") {
    return run({"dist", "--net", "lenet", "--device", device, "--batch", batch, "--batches", "1",
                "--nodefile", folder_ / "nodes", "--index", "0", "--logdir", folder_ / "replay",
                "--timeout", "1"});
  };
  ASSERT_EQ(run(arguments("local", "profiled", 8, {"--profile", "--batches", "3"})).exit, 0);
  const std::string profile = folder_ / "profiled/profile.json";
  EXPECT_EQ(rank("replay:" + profile).exit, 4);  // Rank 1 is missing, so the profile was accepted.
  const auto refused = [&](const std::string& device, const std::string& why, int exit) {
    const Result result = rank(device);
    EXPECT_EQ(result.exit, exit) << result.err;
    EXPECT_NE(result.err.find(why), std::string::npos) << result.err;
  };
  refused("replay:" + (folder_ / "none.json"), "none.json", 1);
  refused("replay:-1", "above 0", 2);
  write_text(folder_ / "cut.json", read_text(profile).substr(0, 300));
  refused("replay:" + (folder_ / "cut.json"), "damaged", 1);
  std::string other = read_text(profile);
  other.replace(other.find("\"conv2\""), 7, "\"conv9\"");
  write_text(folder_ / "other.json", other);
  refused("replay:" + (folder_ / "other.json"), "conv2", 1);
  const Result sixteen = rank("replay:" + profile, "16");
  EXPECT_EQ(sixteen.exit, 1);
  EXPECT_NE(sixteen.err.find("is of batches of 8, not of 16"), std::string::npos) << sixteen.err;
}

TEST_F(Ranks, ThoseOfOneMachineShareItsCores) {
  write_two_nodes();
  const auto computes_on = [&](const std::vector<std::string>& more) {
    std::filesystem::remove_all(folder_ / "cores");
    const Result result =
        run(plus({"launch",   "--nodefile", folder_ / "nodes", "--",        "--net",
                  "lenet",    "--datadir",  data_.path(),      "--logdir",  folder_ / "cores",
                  "--device", "cpu",        "--batch",         "4",         "--batches",
                  "1",        "--job",      "cores",           "--timeout", "20"},
                 more));
    EXPECT_EQ(result.exit, 0) << result.err;
    const std::size_t said = result.err.find("computes on ");
    if (said == std::string::npos) return "nothing said: " + result.err;
    return result.err.substr(said, result.err.find('\n', said) - said);
  };
  const std::string line = computes_on({});
  if (line.find("oneDNN") == std::string::npos)
    GTEST_SKIP() << "built without oneDNN, whose threads it counts: the reference backend has one";
  const auto ends_with = [](const std::string& line, const std::string& end) {
    return line.size() > end.size() && line.substr(line.size() - end.size()) == end;
  };
  const char* limit = std::getenv("OMP_THREAD_LIMIT");
  const int most = limit != nullptr ? std::atoi(limit) : 1000;
  const int each = std::min(std::max(usable_cores() / 2, 1), most);
  EXPECT_TRUE(ends_with(line, ", " + std::to_string(each) + (each == 1 ? " thread" : " threads")))
      << line;
  if (most >= 3) {
    EXPECT_TRUE(ends_with(computes_on({"--threads", "3"}), ", 3 threads"));
  }
}

/// oneDNN's threads wait for each other, and for ever if OpenMP starts fewer than it was told.
TEST_F(Ranks, ThreadsKeepToTheLimitOfOpenMP) {
  const Result result =
      Process({"OMP_THREAD_LIMIT=1", std::getenv("DUPLEX"), "local", "--net", "lenet", "--datadir",
               data_.path(), "--device", "cpu", "--batch", "4", "--batches", "1", "--threads", "3",
               "--logdir", folder_ / "limited"},
              "env")
          .wait();
  EXPECT_EQ(result.exit, 0) << result.err;
  if (result.out.find("oneDNN") == std::string::npos)
    GTEST_SKIP() << "built without oneDNN: the reference backend has one thread";
  EXPECT_NE(result.out.find(", 1 thread\n"), std::string::npos) << result.out;
}

TEST_F(Ranks, TransportTellsBothSidesTheSame) {
  const int port = free_ports(1)[0];
  const std::string ps = "127.0.0.1:" + std::to_string(port);
  const auto side = [&](const std::string& role, const std::string& mine, const std::string& other,
                        const std::string& net) {
    return Process({"transport", "--net", net, "--my-address", mine, "--other-address", other,
                    "--my-role", role, "--repeats", "2", "--logdir", folder_ / "transport",
                    "--timeout", "10"});
  };
  Process server = side("ps", ps, "127.0.0.1", "lenet");
  Process worker = side("worker", "127.0.0.1", ps, "lenet");
  const Result served = server.wait(), worked = worker.wait();
  EXPECT_EQ(served.exit, 0) << served.err;
  EXPECT_EQ(worked.exit, 0) << worked.err;
  const auto figures = [&](const std::string& role) {
    const std::string text = read_text(folder_ / ("transport/transport-" + role + ".json"));
    const std::size_t from = text.find("\"t_comm_s\"");
    return from == std::string::npos ? "none of " + role : text.substr(from);
  };
  EXPECT_EQ(figures("ps").substr(0, 200), figures("worker").substr(0, 200));
  const std::string rate = "\"owner_bytes_per_s\": ", own = figures("ps");
  ASSERT_NE(own.find(rate), std::string::npos) << own;
  const double bytes_a_second = std::stod(own.substr(own.find(rate) + rate.size()));
  // All memory is faster than the lower bound, and none is as fast as the upper one.
  EXPECT_GT(bytes_a_second, 1e7);
  EXPECT_LT(bytes_a_second, 1e13);

  std::filesystem::remove_all(folder_ / "transport");
  Process lenet = side("ps", ps, "127.0.0.1", "lenet");
  const Result other = side("worker", "127.0.0.1", ps, "alexnet").wait();
  EXPECT_EQ(lenet.wait().exit, 1);
  EXPECT_EQ(other.exit, 1);
  EXPECT_NE(other.err.find("LeNet"), std::string::npos) << other.err;
  EXPECT_NE(other.err.find("AlexNet"), std::string::npos) << other.err;
}

TEST_F(Ranks, OneThatCannotStartEndsTheOthersAtOnceWithItsReason) {
  for (const std::string server : {"distributed", "central"}) {
    write_two_nodes();
    const std::vector<std::string> more{"--nodefile", folder_ / "nodes", "--server",
                                        server,       "--timeout",       "50"};
    for (const int broken : {0, 1}) {
      std::filesystem::remove_all(folder_ / "cannot");
      std::vector<std::string> sound = more, other = more;
      sound.insert(sound.end(), {"--index", std::to_string(1 - broken)});
      other.insert(other.end(), {"--index", std::to_string(broken)});
      Process waiting(arguments("dist", "cannot", 8, sound));
      const Result failed =
          Process(arguments_on(folder_ / "nowhere", "dist", "cannot", 8, other)).wait();
      EXPECT_EQ(failed.exit, 1) << failed.err;
      const Result told = waiting.wait();
      EXPECT_EQ(told.exit, 1) << told.err;
      for (const std::string& part : {"rank " + std::to_string(broken) + " (127.0.0.1:",
                                      std::string(") cannot start: "), std::string("nowhere")})
        EXPECT_NE(told.err.find(part), std::string::npos) << server << ": " << told.err;
    }
  }
}

/// Rank 1 fails once it meets the others, before all of them have met.
TEST_F(Ranks, OneThatCannotMeetEndsTheOthersWithItsReason) {
  for (const std::string why : {"congestion", "host", "port", "server's port"}) {
    SCOPED_TRACE(why);
    const bool port = why.find("port") != std::string::npos;
    std::filesystem::remove_all(folder_ / "meet");
    const std::vector<int> ports = free_ports(3);
    std::string nodes;
    for (const int port : ports) nodes += "127.0.0.1:" + std::to_string(port) + "\n";
    write_text(folder_ / "nodes", nodes);
    write_text(folder_ / "own", why == "host" ? "no.such.host.invalid" + nodes.substr(9) : nodes);
    net::Listener taken;
    if (port)
      taken = net::Listener::open(
          {"127.0.0.1", static_cast<std::uint16_t>(ports[why == "port" ? 1 : 0])});
    std::vector<Process> ranks;
    for (int rank = 0; rank < 3; ++rank) {
      std::vector<std::string> more{"--nodefile", folder_ / (rank == 1 ? "own" : "nodes"),
                                    "--index",    std::to_string(rank),
                                    "--timeout",  "50"};
      if (rank == 1 && why == "congestion") more = plus(more, {"--congestion", "nosuch"});
      if (why == "server's port") more = plus(more, {"--server", "central"});
      ranks.emplace_back(arguments("dist", "meet", 8, more));
    }
    for (Process& rank : ranks) {
      const Result result = rank.wait();
      EXPECT_TRUE(result.exit == 1 || result.exit == 2) << result.exit << ": " << result.err;
      // A nodefile with another host differs, too, which two other ranks may find first.
      const bool differs =
          why == "host" && result.err.find("nodefile with copies at") != std::string::npos;
      EXPECT_TRUE(differs ||
                  result.err.find(why == "congestion" ? "congestion control 'nosuch'"
                                  : why == "host"     ? "'no.such.host.invalid' cannot be resolved"
                                                      : "cannot listen on") != std::string::npos)
          << result.err;
    }
  }
}

/// The first worker saves what was trained, unless it is lost: then the server does.
TEST_F(Ranks, ACentralServerSavesWhereTheFirstWorkerIsLost) {
  std::vector<Process> ranks =
      start("first-lost", 3, 2, {"--sync", "none", "--server", "central", "--epochs", "12"});
  await_bytes(folder_ / "first-lost/metrics.csv", 500);
  ranks[1].kill(SIGKILL);
  EXPECT_EQ(ranks[1].wait().exit, 128 + SIGKILL);
  const Result server = ranks[0].wait(), worker = ranks[2].wait();
  EXPECT_EQ(server.exit, 0) << server.err;
  EXPECT_EQ(worker.exit, 0) << worker.err;
  EXPECT_NE(server.err.find("saved the weights, since rank 1 is lost"), std::string::npos)
      << server.err;
  const std::string saved = folder_ / "first-lost/checkpoint.safetensors";
  const Result test =
      run(arguments("local", "tested", 8, {"--epochs", "0", "--accuracy", "--weights", saved}));
  EXPECT_EQ(test.exit, 0) << test.err;
}

/// A worker that is killed, and one that is stopped, which nobody wakes.
TEST_F(Ranks, LaunchGoesOnWithoutAWorkerOfAnAsynchronousServer) {
  for (const int signal : {SIGKILL, SIGSTOP}) {
    SCOPED_TRACE(signal);
    const std::string name = "launched" + std::to_string(signal);
    std::string nodes;
    for (const int port : free_ports(3)) nodes += "127.0.0.1:" + std::to_string(port) + "\n";
    write_text(folder_ / "nodes", nodes);
    Process launch({"launch",
                    "--nodefile",
                    folder_ / "nodes",
                    "--",
                    "--net",
                    "lenet",
                    "--datadir",
                    data_.path(),
                    "--batch",
                    "2",
                    "--threads",
                    "1",
                    "--epochs",
                    "12",
                    "--sync",
                    "none",
                    "--server=central",
                    "--logdir",
                    folder_ / name,
                    "--timeout",
                    signal == SIGSTOP ? "2" : "20"});
    await_bytes(folder_ / (name + "/metrics.csv"), 500);
    for (const int worker : processes_with({" dist ", folder_ / "nodes", " --index 2 "}))
      ::kill(worker, signal);
    const Result result = launch.wait();
    EXPECT_EQ(result.exit, 128 + SIGKILL) << result.err;
    EXPECT_NE(result.err.find("the others may go on without it"), std::string::npos) << result.err;
    EXPECT_EQ(result.err.find("the test ended it"), std::string::npos) << result.err;
    EXPECT_TRUE(std::filesystem::exists(folder_ / (name + "/checkpoint.safetensors")))
        << result.err;
  }
}

/// Rank 0 may write no file of more than 1.7 MB: the checkpoint fits, the ledger does not.
TEST_F(Ranks, BooksThatCannotBeKeptCostNoTraining) {
  write_two_nodes();
  const auto rank = [&](const std::string& index) {
    std::string command = "trap '' XFSZ; ulimit -f 1700; exec \"$DUPLEX\"";
    if (index == "1") command = "exec \"$DUPLEX\"";
    for (const std::string& word : arguments("dist", "full", 1,
                                             {"--nodefile", folder_ / "nodes", "--index", index,
                                              "--batches", "1300", "--timeout", "20"}))
      command += " '" + word + "'";
    return Process({"-c", command}, "/bin/bash");
  };
  Process first = rank("0"), second = rank("1");
  const Result full = first.wait(), other = second.wait();
  EXPECT_EQ(other.exit, 0) << other.err;
  EXPECT_EQ(full.exit, 1) << full.err;
  EXPECT_NE(full.err.find("ledger-0.csv is incomplete"), std::string::npos) << full.err;
  EXPECT_NE(full.err.find("trained to its end, but "), std::string::npos) << full.err;
  EXPECT_NE(read_text(folder_ / "full/summary.json").find("\"steps\": 1300"), std::string::npos);
  EXPECT_FALSE(read_weights(folder_ / "full/checkpoint.safetensors").empty());
}

TEST_F(Ranks, LostRankEndsTheOthersWithThree) {
  for (const char* server : {"central", "distributed"}) {
    SCOPED_TRACE(server);
    std::vector<Process> ranks =
        start(std::string("lost-") + server, 3, 2, {"--server", server, "--epochs", "100000"});
    await_bytes(folder_ / ("lost-" + std::string(server) + "/metrics.csv"), 500);
    ranks[2].kill(SIGKILL);
    EXPECT_EQ(ranks[2].wait().exit, 128 + SIGKILL);
    for (int rank : {0, 1}) {
      const Result result = ranks[static_cast<std::size_t>(rank)].wait();
      EXPECT_EQ(result.exit, 3) << result.err;
      EXPECT_NE(result.err.find("rank 2"), std::string::npos) << result.err;
    }
  }
}

TEST_F(Ranks, RanksThatDifferAreNamed) {
  write_two_nodes();
  const auto rank = [&](const char* index, const char* rate, const char* timeout) {
    return Process(arguments(
        "dist", "differ", 8,
        {"--nodefile", folder_ / "nodes", "--index", index, "--lr", rate, "--timeout", timeout}));
  };
  const auto expect = [](Process first, Process second, const std::vector<std::string>& parts) {
    for (const Result& result : {first.wait(), second.wait()}) {
      EXPECT_EQ(result.exit, 1) << result.err;
      for (const std::string& part : parts)
        EXPECT_NE(result.err.find(part), std::string::npos) << result.err;
    }
  };
  expect(rank("0", "0.05", "20"), rank("1", "0.06", "20"), {"lr 0.05", "lr 0.06"});
  std::filesystem::remove_all(folder_ / "differ");
  expect(rank("0", "0.05", "20"), rank("1", "0.05", "5"), {"timeout 20000 ms", "timeout 5000 ms"});
}

TEST_F(Ranks, DataMayLieElsewhereButMustBeTheSame) {
  const TemporaryFolder elsewhere;
  const auto both = [&] {
    std::filesystem::remove_all(folder_ / "data");
    write_two_nodes();
    const std::vector<std::string> nodes{"--nodefile", folder_ / "nodes", "--timeout", "20"};
    std::vector<std::string> zero = nodes, one = nodes;
    zero.insert(zero.end(), {"--index", "0"});
    one.insert(one.end(), {"--index", "1"});
    Process first(arguments("dist", "data", 8, zero));
    Process second(arguments_on(elsewhere.path(), "dist", "data", 8, one));
    return std::vector<Result>{first.wait(), second.wait()};
  };
  write_squares(elsewhere.path(), 96, 20);
  for (const Result& result : both()) EXPECT_EQ(result.exit, 0) << result.err;
  write_squares(elsewhere.path(), 95, 20);
  for (const Result& result : both()) {
    EXPECT_EQ(result.exit, 1) << result.err;
    EXPECT_NE(result.err.find(data_.path()), std::string::npos) << result.err;
    EXPECT_NE(result.err.find(elsewhere.path()), std::string::npos) << result.err;
  }
}

TEST_F(Ranks, MissingRankTimesOutWithFour) {
  write_two_nodes();
  const Result result = run(arguments(
      "dist", "missing", 8, {"--nodefile", folder_ / "nodes", "--index", "0", "--timeout", "1"}));
  EXPECT_EQ(result.exit, 4) << result.err;
  EXPECT_NE(result.err.find("rank 1"), std::string::npos) << result.err;
}

}  // namespace
}  // namespace duplex::tools::testing
