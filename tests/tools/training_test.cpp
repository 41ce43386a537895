// Training with others gives what training alone gives: the same bits for the same run, the same
// weights, to rounding, for N ranks of sync join as for one machine with the N-fold batch.
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <map>
#include <sstream>
#include <thread>

#include "core/safetensors.h"
#include "tests/temporary_folder.h"
#include "tests/tools/program.h"

namespace duplex::tools::testing {
namespace {

using Weights = std::map<std::string, std::vector<float>>;

Weights read_weights(const std::string& path) {
  const SafetensorsFile file(path);
  Weights weights;
  for (const SafetensorsEntry& entry : file.entries()) {
    auto& values = weights[entry.name];
    values.resize(static_cast<std::size_t>(entry.shape.elements()));
    file.read(entry, values.data());
  }
  return weights;
}

/// Norm of the difference over the norm, the largest of any parameter.
double distance(const Weights& a, const Weights& b) {
  double largest = a.size() == b.size() && !a.empty() ? 0.0 : INFINITY;
  for (const auto& [name, values] : a) {
    const auto other = b.find(name);
    if (other == b.end() || other->second.size() != values.size()) return INFINITY;
    double difference = 0.0, norm = 0.0;
    for (std::size_t i = 0; i < values.size(); ++i) {
      difference += std::pow(double{values[i]} - double{other->second[i]}, 2);
      norm += std::pow(double{values[i]}, 2);
    }
    largest = std::max(largest, std::sqrt(difference / std::max(norm, 1e-30)));
  }
  return largest;
}

class Training : public ::testing::Test {
 protected:
  Training() { write_squares(data_.path(), 96, 20); }

  std::vector<std::string> arguments(const std::string& command, const std::string& name, int batch,
                                     const std::vector<std::string>& more) const {
    return arguments_on(data_.path(), command, name, batch, more);
  }

  std::vector<std::string> arguments_on(const std::string& data, const std::string& command,
                                        const std::string& name, int batch,
                                        const std::vector<std::string>& more) const {
    std::vector<std::string> all{
        command,     "--net", "lenet",   "--datadir",          data, "--logdir", folder_ / name,
        "--threads", "1",     "--batch", std::to_string(batch)};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }

  Weights alone(int batch, const std::vector<std::string>& more) const {
    const std::string name = "alone" + std::to_string(++runs_);
    const Result result = run(arguments("local", name, batch, more));
    EXPECT_EQ(result.exit, 0) << result.err;
    return read_weights(folder_ / (name + "/checkpoint.safetensors"));
  }

  std::vector<Process> start(const std::string& name, int ranks, int batch,
                             const std::vector<std::string>& more) const {
    std::string nodes;
    for (int port : free_ports(ranks)) nodes += "127.0.0.1:" + std::to_string(port) + "\n";
    write_text(folder_ / (name + ".nodes"), nodes);
    std::vector<Process> processes;
    for (int rank = 0; rank < ranks; ++rank) {
      std::vector<std::string> own = more;
      for (const char* flag : {"--job", "--timeout"})
        own.insert(own.end(), {flag, flag[2] == 'j' ? name : "20"});
      own.insert(own.end(),
                 {"--nodefile", folder_ / (name + ".nodes"), "--index", std::to_string(rank)});
      processes.emplace_back(arguments("dist", name, batch, own));
    }
    return processes;
  }

  Weights together(int ranks, int batch, const std::vector<std::string>& more) const {
    const std::string name = "together" + std::to_string(++runs_);
    for (Process& process : start(name, ranks, batch, more)) {
      const Result result = process.wait();
      EXPECT_EQ(result.exit, 0) << result.err;
    }
    return read_weights(folder_ / (name + "/checkpoint.safetensors"));
  }

  /// A nodefile for two ranks, "nodes".
  void write_two_nodes() const {
    const std::vector<int> ports = free_ports(2);
    write_text(folder_ / "nodes", "127.0.0.1:" + std::to_string(ports[0]) +
                                      "\n127.0.0.1:" + std::to_string(ports[1]) + "\n");
  }

  TemporaryFolder data_, folder_;
  mutable int runs_ = 0;
};

TEST_F(Training, SameSeedSameBits) {
  const std::vector<std::string> flags{"--lr",     "0.05",   "--momentum", "0.9",
                                       "--mirror", "--seed", "5"};
  const Weights first = alone(16, flags);
  EXPECT_EQ(first, alone(16, flags));
  EXPECT_EQ(together(2, 8, flags), together(2, 8, flags));
  const Weights other = alone(16, {"--lr", "0.05", "--momentum", "0.9", "--mirror", "--seed", "6"});
  EXPECT_GT(distance(first, other), 0.1);
}

TEST_F(Training, JoinIsTheNFoldBatch) {
  const std::vector<std::vector<std::string>> optimisers{
      {"--lr", "0.05"},
      {"--lr", "0.05", "--momentum", "0.9", "--weight-decay", "0.001"},
      {"--optimizer", "adam", "--lr", "0.001", "--warmup", "3"}};
  for (std::vector<std::string> flags : optimisers) {
    SCOPED_TRACE(flags.size());
    flags.insert(flags.end(), {"--epochs", "2"});
    const Weights expected = alone(24, flags);
    std::vector<std::string> central = flags, even = flags, tensors = flags;
    central.insert(central.end(), {"--server", "central"});
    even.insert(even.end(), {"--server", "distributed"});
    tensors.insert(tensors.end(), {"--server", "distributed", "--shards", "tensors"});
    const Weights by_central = together(4, 8, central);  // A server and three workers.
    const Weights by_even = together(3, 8, even);
    EXPECT_LT(distance(expected, by_central), 2e-5);
    EXPECT_EQ(by_central, by_even);
    EXPECT_EQ(by_central, together(3, 8, tensors));
  }
}

std::vector<std::string> plus(std::vector<std::string> flags,
                              const std::vector<std::string>& more) {
  flags.insert(flags.end(), more.begin(), more.end());
  return flags;
}

TEST_F(Training, JoinIsAccumulationToTheBit) {
  const std::vector<std::string> flags{"--lr", "0.05", "--momentum", "0.9", "--epochs", "2"};
  const Weights expected = alone(8, plus(flags, {"--accumulate", "3"}));
  for (const char* overlap : {"on", "off"}) {
    EXPECT_EQ(expected, together(4, 8, plus(flags, {"--server", "central", "--overlap", overlap})));
    EXPECT_EQ(expected, together(3, 8, plus(flags, {"--overlap", overlap})));
  }
}

TEST_F(Training, SplitIsOneMachinesBatch) {
  const std::vector<std::string> flags{"--lr", "0.05", "--momentum", "0.9"};
  const std::vector<std::string> split = plus(flags, {"--sync", "split"});
  // Equal parts, and parts of 6, 5 and 5.
  const Weights equal = together(3, 24, split);
  EXPECT_EQ(equal, alone(8, plus(flags, {"--accumulate", "3"})));
  EXPECT_LT(distance(equal, alone(24, flags)), 2e-5);
  const Weights unequal = together(3, 16, split);
  EXPECT_LT(distance(unequal, alone(16, flags)), 2e-5);
  EXPECT_EQ(unequal, together(4, 16, plus(split, {"--server", "central"})));
}

TEST_F(Training, AveragingEveryBatchIsTheNFoldBatch) {  // With plain SGD: spec, 7.
  const std::vector<std::string> flags{"--lr", "0.05", "--epochs", "2"};
  const Weights each = together(3, 8, plus(flags, {"--average", "1"}));
  EXPECT_LT(distance(each, alone(24, flags)), 2e-5);
  EXPECT_EQ(each, together(4, 8, plus(flags, {"--average", "1", "--server", "central"})));
  // Less often is another training; its last round is shorter where the steps are no multiple.
  const std::vector<std::string> seldom = plus(flags, {"--average", "3"});
  EXPECT_GT(distance(together(3, 8, seldom), each), 1e-4);
  EXPECT_EQ(together(3, 8, seldom), together(4, 8, plus(seldom, {"--server", "central"})));
}

/// The others wait meanwhile, and get the same weights.
TEST_F(Training, FirstWorkerTestsBetweenEpochs) {
  const std::vector<std::string> flags{"--lr", "0.05", "--epochs", "4"};
  const Weights without = together(3, 8, flags);
  EXPECT_EQ(together(3, 8, plus(flags, {"--test-every", "1"})), without);
  const std::string rows =
      read_text(folder_ / ("together" + std::to_string(runs_) + "/accuracy.csv"));
  EXPECT_EQ(std::count(rows.begin(), rows.end(), '\n'), 1 + 4) << rows;
}

TEST_F(Training, AsynchronousWorkersLearn) {
  for (const char* server : {"central", "distributed"}) {
    SCOPED_TRACE(server);
    const std::vector<std::string> flags{"--sync", "none", "--server", server,      "--epochs",
                                         "20",     "--lr", "0.02",     "--accuracy"};
    const int ranks = server[0] == 'c' ? 4 : 3;
    const std::string name = std::string("async-") + server;
    std::string report;
    for (Process& process : start(name, ranks, 8, flags)) {
      const Result result = process.wait();
      EXPECT_EQ(result.exit, 0) << result.err;
      report += result.out;
    }
    EXPECT_NE(report.find("top-1 100.00%"), std::string::npos) << report;
    EXPECT_NE(report.find("staleness"), std::string::npos) << report;
  }
}

TEST_F(Training, AsynchronousWorkerThatDiesStopsNobody) {
  std::vector<Process> ranks =
      start("survive", 4, 2, {"--sync", "none", "--server", "central", "--epochs", "40"});
  const std::string metrics = folder_ / "survive/metrics.csv";
  for (int i = 0; i < 1000 && read_text(metrics).size() < 500; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
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

TEST_F(Training, ReplayWaitsWhereItWouldCompute) {
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
  // A wait is never shorter than the profile says; how much longer is the machine's affair.
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

TEST_F(Training, ReplayWantsAProfileThatFits) {
  write_two_nodes();
  const auto rank = [&](const std::string& device) {
    return run({"dist", "--net", "lenet", "--device", device, "--batches", "1", "--nodefile",
                folder_ / "nodes", "--index", "0", "--logdir", folder_ / "replay", "--timeout",
                "1"});
  };
  ASSERT_EQ(run(arguments("local", "profiled", 8, {"--profile", "--batches", "3"})).exit, 0);
  const std::string profile = folder_ / "profiled/profile.json";
  EXPECT_EQ(rank("replay:" + profile).exit, 4);  // Rank 1 is missing: the profile was taken.
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
}

TEST_F(Training, LaunchStartsAllRanksAndEndsThemTogether) {
  write_two_nodes();
  const auto launch = [&](const std::vector<std::string>& dist) {
    return run(plus({"launch", "--nodefile", folder_ / "nodes", "--", "--net", "lenet", "--logdir",
                     folder_ / "launched", "--job", "launch", "--timeout", "20"},
                    dist));
  };
  const Result good = launch({"--device", "replay:0.01", "--batches", "5"});
  EXPECT_EQ(good.exit, 0) << good.err;
  EXPECT_NE(good.out.find("[0] replay"), std::string::npos) << good.out;
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
}

TEST_F(Training, TransportTellsBothSidesTheSame) {
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
  EXPECT_GT(bytes_a_second, 1e7);   // Of any memory;
  EXPECT_LT(bytes_a_second, 1e13);  // of none.

  Process lenet = side("ps", ps, "127.0.0.1", "lenet");
  const Result other = side("worker", "127.0.0.1", ps, "alexnet").wait();
  EXPECT_EQ(lenet.wait().exit, 1);
  EXPECT_EQ(other.exit, 1);
  EXPECT_NE(other.err.find("LeNet"), std::string::npos) << other.err;
  EXPECT_NE(other.err.find("AlexNet"), std::string::npos) << other.err;
}

TEST_F(Training, LostRankEndsTheOthersWithThree) {
  for (const char* server : {"central", "distributed"}) {
    SCOPED_TRACE(server);
    std::vector<Process> ranks =
        start(std::string("lost-") + server, 3, 2, {"--server", server, "--epochs", "100000"});
    const std::string metrics = folder_ / ("lost-" + std::string(server) + "/metrics.csv");
    for (int i = 0; i < 1000 && read_text(metrics).size() < 500; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    ranks[2].kill(SIGKILL);
    EXPECT_EQ(ranks[2].wait().exit, 128 + SIGKILL);
    for (int rank : {0, 1}) {
      const Result result = ranks[static_cast<std::size_t>(rank)].wait();
      EXPECT_EQ(result.exit, 3) << result.err;
      EXPECT_NE(result.err.find("rank 2"), std::string::npos) << result.err;
    }
  }
}

TEST_F(Training, RanksThatDifferAreNamed) {
  write_two_nodes();
  const auto rank = [&](const char* index, const char* rate) {
    return Process(arguments(
        "dist", "differ", 8,
        {"--nodefile", folder_ / "nodes", "--index", index, "--lr", rate, "--timeout", "20"}));
  };
  Process first = rank("0", "0.05"), second = rank("1", "0.06");
  for (const Result& result : {first.wait(), second.wait()}) {
    EXPECT_EQ(result.exit, 1) << result.err;
    EXPECT_NE(result.err.find("lr 0.05"), std::string::npos) << result.err;
    EXPECT_NE(result.err.find("lr 0.06"), std::string::npos) << result.err;
  }
}

TEST_F(Training, DataMayLieElsewhereButMustBeTheSame) {
  const TemporaryFolder elsewhere;
  const auto both = [&] {
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

TEST_F(Training, MissingRankTimesOutWithFour) {
  write_two_nodes();
  const Result result = run(arguments(
      "dist", "missing", 8, {"--nodefile", folder_ / "nodes", "--index", "0", "--timeout", "1"}));
  EXPECT_EQ(result.exit, 4) << result.err;
  EXPECT_NE(result.err.find("rank 1"), std::string::npos) << result.err;
}

}  // namespace
}  // namespace duplex::tools::testing
