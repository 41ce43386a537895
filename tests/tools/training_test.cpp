// Training with others gives the same as training alone. The same run gives the same bits, and N
// ranks of sync join give the same weights, to rounding, as one machine with the N-fold batch.
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/tools/training_runs.h"
#include "tools/run_directory/row_file.h"
#include "tools/run_directory/rows.h"

namespace duplex::tools::testing {
namespace {

using Training = TrainingRuns;

/// Returns the norm of the difference over the norm, for the parameter where it is largest.
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
  // First the parts are equal, then they have 6, 5 and 5 images.
  const Weights equal = together(3, 24, split);
  EXPECT_EQ(equal, alone(8, plus(flags, {"--accumulate", "3"})));
  EXPECT_LT(distance(equal, alone(24, flags)), 2e-5);
  const Weights unequal = together(3, 16, split);
  EXPECT_LT(distance(unequal, alone(16, flags)), 2e-5);
  EXPECT_EQ(unequal, together(4, 16, plus(split, {"--server", "central"})));
}

/// Workers have 12, 8 and 4 images of 24, and 10, 4 and 2 of 16.
TEST_F(Training, SharesOfAStepAreWeightedByTheirImages) {
  const std::vector<std::string> flags{"--lr", "0.05", "--momentum", "0.9", "--epochs", "2"};
  const std::vector<std::string> share = plus(flags, {"--share", "3:2:1"});
  const Weights expected = alone(24, flags), joined = together(3, 8, share);
  EXPECT_LT(distance(joined, expected), 2e-5);
  EXPECT_EQ(joined, together(4, 8, plus(share, {"--server", "central"})));
  const Weights split = together(3, 16, plus(flags, {"--sync", "split", "--share", "5:2:1"}));
  EXPECT_LT(distance(split, alone(16, flags)), 2e-5);
  const std::vector<std::string> plain{"--lr", "0.05", "--average", "1", "--share", "3:2:1"};
  EXPECT_LT(distance(together(3, 8, plain), alone(24, {"--lr", "0.05"})), 2e-5);
}

/// Rank 0 replays a t_grad of 20 ms, rank 1 one of 40: of two batches they have 4/3 and 2/3, so
/// that both take 26.7 ms. Speeds that are alike leave shares even.
TEST_F(Training, SharesBySpeedAreThoseThatRanksMeasure) {
  for (const std::string share : {"speeds", "auto", "even", "auto, alike"}) {
    SCOPED_TRACE(share);
    const bool alike = share == "auto, alike", even = alike || share == "even";
    write_two_nodes();
    std::vector<Process> ranks;
    for (int rank = 0; rank < 2; ++rank)
      ranks.emplace_back(std::vector<std::string>{
          "dist", "--net", "lenet", "--device", rank == 0 || alike ? "replay:0.02" : "replay:0.04",
          "--batch", "300", "--batches", "32", "--timeout", "20", "--share", alike ? "auto" : share,
          "--nodefile", folder_ / "nodes", "--index", std::to_string(rank), "--logdir",
          folder_ / share});
    for (Process& rank : ranks) {
      const Result result = rank.wait();
      ASSERT_EQ(result.exit, 0) << result.err;
      EXPECT_EQ(result.err.find("part of a step is share 1000:500") != std::string::npos, !even)
          << result.err;
    }
    const auto config = nlohmann::json::parse(read_text(folder_ / (share + "/config.json")));
    EXPECT_EQ(config.contains("samples"), !even);
    if (even) continue;
    EXPECT_EQ(config["samples"], nlohmann::json::array({400, 200}));
    // Even shares would take 20 ms here, and the whole step's samples 40. Of single steps nothing
    // is sure on a busy machine: a replay sleeps longer, and then makes up for it.
    std::vector<double> gradients;
    for (const StepMetrics& step : read_rows<StepMetrics>(folder_ / (share + "/metrics.csv"), true))
      gradients.push_back(step.gradient);
    std::nth_element(gradients.begin(),
                     gradients.begin() + static_cast<std::ptrdiff_t>(gradients.size() / 2),
                     gradients.end());
    const double median = gradients[gradients.size() / 2];
    EXPECT_GT(median, 0.0235);
    EXPECT_LT(median, 0.0345);
  }
}

TEST_F(Training, SharesThatDoNotFitAreRefused) {
  const auto refuses = [&](const std::vector<std::string>& more, const std::string& because) {
    for (Process& rank : start("refused", 3, 8, more)) {
      const Result result = rank.wait();
      EXPECT_EQ(result.exit, 2) << result.err;
      EXPECT_NE(result.err.find(because), std::string::npos) << result.err;
    }
  };
  refuses({"--share", "3:2"}, "--share 3:2 is for 2 workers, and there are 3");
  refuses({"--share", "3:2", "--server", "central", "--sync", "none"}, "goes with --sync join");
  refuses({"--share", "900:1:900", "--sync", "split"},
          "leaves worker 1 none of the 8 samples of a step");
  for (const char* bad : {"", "3:", "3:0:1", "3:-2:1", "a:b:c", "3,2,1", "1:1:1234567"})
    refuses({"--share", bad}, "'" + std::string(bad) + "' is neither even");
}

TEST_F(Training, AveragingEveryBatchIsTheNFoldBatch) {  // This needs plain SGD: spec, 7.
  const std::vector<std::string> flags{"--lr", "0.05", "--epochs", "2"};
  const Weights each = together(3, 8, plus(flags, {"--average", "1"}));
  EXPECT_LT(distance(each, alone(24, flags)), 2e-5);
  EXPECT_EQ(each, together(4, 8, plus(flags, {"--average", "1", "--server", "central"})));
  // Averaging less often is a different training. Its last round is shorter if the steps are no
  // multiple of a round's.
  const std::vector<std::string> seldom = plus(flags, {"--average", "3"});
  EXPECT_GT(distance(together(3, 8, seldom), each), 1e-4);
  EXPECT_EQ(together(3, 8, seldom), together(4, 8, plus(seldom, {"--server", "central"})));
}

/// Returns the rows of a file; those of accuracy.csv have the epochs in the second column, and lack
/// the last one, which is a time.
std::vector<std::string> test_rows(const std::string& path) {
  std::istringstream text(read_text(path));
  std::vector<std::string> rows;
  for (std::string line; std::getline(text, line);)
    if (line.rfind("step,", 0) != 0) rows.push_back(line.substr(0, line.rfind(',')));
  return rows;
}

/// Returns a row without the number of steps, which counts differently on another number of ranks.
std::string after_step(const std::string& row) {
  return row.substr(row.find(','));
}

/// The others wait for its gradients meanwhile, and all ranks get the same weights.
TEST_F(Training, FirstWorkerTestsBetweenEpochs) {
  const std::vector<std::string> flags{"--lr", "0.05", "--epochs", "4"};
  const Weights without = together(3, 8, flags);
  EXPECT_EQ(together(3, 8, plus(flags, {"--test-every", "1"})), without);
  const std::string path = folder_ / ("together" + std::to_string(runs_) + "/accuracy.csv");
  EXPECT_EQ(test_rows(path).size(), 4U) << read_text(path);
}

/// A test between two steps tests the weights that a run would have saved if it ended there, to the
/// last digit of the loss: the update, or the mean, of the last gradient has come.
TEST_F(Training, TestsBetweenEpochsAreOfTheWeightsThatTheyName) {
  struct Case {
    const char* name;
    int ranks, batch;
    std::vector<std::string> flags;
    std::string batches;  ///< Batches of the run that ends where the other has its first test.
  };
  const std::vector<Case> cases{{"join", 2, 16, {}, "3"},
                                {"off", 2, 16, {"--overlap", "off"}, "3"},
                                {"central", 3, 16, {"--server", "central"}, "3"},
                                {"split", 2, 32, {"--sync", "split"}, "3"},
                                {"average", 2, 16, {"--average", "2"}, "4"}};
  std::vector<std::string> rows;
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    const std::vector<std::string> flags = plus({"--lr", "0.05", "--momentum", "0.9"}, c.flags);
    together(c.ranks, c.batch, plus(flags, {"--epochs", "3", "--test-every", "1"}));
    const auto between =
        test_rows(folder_ / ("together" + std::to_string(runs_) + "/accuracy.csv"));
    together(c.ranks, c.batch,
             plus(flags, {"--epochs", "3", "--batches", c.batches, "--accuracy"}));
    const auto last = test_rows(folder_ / ("together" + std::to_string(runs_) + "/accuracy.csv"));
    ASSERT_EQ(last.size(), 1U);
    ASSERT_FALSE(between.empty());
    EXPECT_EQ(between[0], last[0]);
    rows.push_back(between[0]);
  }
  alone(16, {"--lr", "0.05", "--momentum", "0.9", "--accumulate", "2", "--epochs", "3",
             "--test-every", "1"});
  const auto accumulated = test_rows(folder_ / ("alone" + std::to_string(runs_) + "/accuracy.csv"));
  ASSERT_EQ(accumulated.size(), 3U);
  EXPECT_EQ(after_step(accumulated[0]), after_step(rows[0]));
}

/// With 63 images in batches of 32, ten epochs are 19 batches.
TEST_F(Training, EpochsAreSamplesSeen) {
  const TemporaryFolder few;
  write_squares(few.path(), 63, 20);
  const Result result =
      run(arguments_on(few.path(), "local", "few", 32, {"--epochs", "10", "--test-every", "1"}));
  ASSERT_EQ(result.exit, 0) << result.err;
  const auto tests = test_rows(folder_ / "few/accuracy.csv");
  EXPECT_EQ(tests.size(), 10U);
  EXPECT_EQ(tests.back().rfind("19,9.65", 0), 0U) << tests.back();  // It is 19 * 32 / 63.
  const auto steps = test_rows(folder_ / "few/metrics.csv");
  ASSERT_EQ(steps.size(), 19U);
  EXPECT_EQ(steps.back().rfind("18,9,", 0), 0U) << steps.back();
}

TEST_F(Training, RanksThatStartFromOtherWeightsAreToldSo) {
  alone(16, {"--batches", "1"});
  const std::string weights =
      folder_ / ("alone" + std::to_string(runs_) + "/checkpoint.safetensors");
  for (const char* server : {"distributed", "central"}) {
    std::vector<Process> processes;
    write_two_nodes();
    for (int rank = 0; rank < 2; ++rank) {
      std::vector<std::string> flags{"--nodefile", folder_ / "nodes",   "--timeout",
                                     "20",         "--server",          server,
                                     "--index",    std::to_string(rank)};
      if (rank == 0) flags.insert(flags.end(), {"--weights", weights});
      processes.emplace_back(arguments("dist", "mixed", 8, flags));
    }
    for (Process& process : processes) {
      const Result result = process.wait();
      EXPECT_EQ(result.exit, 1);
      for (const char* word : {"starting weights", "'--seed 1'", weights.c_str(),
                               "give every rank the same --weights"})
        EXPECT_NE(result.err.find(word), std::string::npos) << result.err;
    }
  }
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
