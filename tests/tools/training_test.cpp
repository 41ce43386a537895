// Training with others gives what training alone gives: the same bits for the same run, the same
// weights, to rounding, for N ranks of sync join as for one machine with the N-fold batch.
#include <algorithm>
#include <cmath>

#include "tests/tools/training_runs.h"

namespace duplex::tools::testing {
namespace {

using Training = TrainingRuns;

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

}  // namespace
}  // namespace duplex::tools::testing
