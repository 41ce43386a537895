// Tests the memory that a rank takes, in copies of the network's weights.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/temporary_folder.h"
#include "tests/tools/program.h"

namespace duplex::tools::testing {
namespace {

class Memory : public ::testing::Test {
 protected:
  Memory() { write_squares(data_.path(), 40, 10); }
  void SetUp() override {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    GTEST_SKIP() << "a sanitizer keeps freed memory and has some of its own, so that a peak says "
                    "nothing";
#endif
  }

  /// Returns the peak memory of each rank of a run, in copies of Resnet34's weights.
  std::vector<double> dist(int ranks, const std::vector<std::string>& more) {
    std::string nodes;
    for (int port : free_ports(ranks)) nodes += "127.0.0.1:" + std::to_string(port) + "\n";
    write_text(folder_ / "nodes", nodes);
    std::vector<Process> processes;
    for (int rank = 0; rank < ranks; ++rank) {
      std::vector<std::string> arguments{"dist",
                                         "--net",
                                         "resnet34",
                                         "--timeout",
                                         "20",
                                         "--logdir",
                                         folder_ / "run",
                                         "--nodefile",
                                         folder_ / "nodes",
                                         "--index",
                                         std::to_string(rank)};
      arguments.insert(arguments.end(), more.begin(), more.end());
      processes.emplace_back(arguments);
    }
    std::vector<double> peaks;
    for (int rank = 0; rank < ranks; ++rank) {
      const Result result = processes[static_cast<std::size_t>(rank)].wait();
      EXPECT_EQ(result.exit, 0) << result.err;
      peaks.push_back(peak_of("run/rank-" + std::to_string(rank) + ".json"));
    }
    return peaks;
  }
  double peak_of(const std::string& summary) {
    const auto json = nlohmann::json::parse(read_text(folder_ / summary));
    return json.at("peak_memory_bytes").get<double>() / weights_bytes;
  }

  static constexpr double weights_bytes = 21289802 * 4.0;  ///< Weights of Resnet34 with 10 classes.
  TemporaryFolder data_, folder_;
};

/// A worker of several needs more host memory than one that trains alone: a copy of weights and
/// gradients, and those gradients of its own share that came from others before their turn, which
/// are two thirds of a copy at most.
TEST_F(Memory, AWorkerHasOneMoreCopyOfWeightsAndGradients) {
  const std::vector<std::string> train{"--datadir", data_.path(), "--input", "32",        "--batch",
                                       "2",         "--batches",  "5",       "--threads", "1"};
  std::vector<std::string> local{"local", "--net", "resnet34", "--logdir", folder_ / "alone"};
  local.insert(local.end(), train.begin(), train.end());
  ASSERT_EQ(run(local).exit, 0);
  const double alone = peak_of("alone/summary.json");
  for (const double peak : dist(3, train)) EXPECT_LT(peak, alone + 2.8);
}

/// A central server keeps the weights, the sums, and gradients that came before their turn: at most
/// one copy of each, and not one for each worker.
TEST_F(Memory, ACentralServersDoesNotGrowWithItsWorkers) {
  std::vector<std::string> central{"--server",  "central", "--device",  "replay:0.001",
                                   "--classes", "10",      "--batches", "6"};
  EXPECT_LT(dist(7, central)[0], 3.6);
}

}  // namespace
}  // namespace duplex::tools::testing
