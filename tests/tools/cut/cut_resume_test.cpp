// Trainings of networks that are cut, which end early and go on from their checkpoints: as they
// were, or cut in another way.
#include <signal.h>

#include <cmath>
#include <filesystem>

#include "tests/tools/training_runs.h"

namespace duplex::tools::testing {
namespace {

using Words = std::vector<std::string>;

class CutResume : public TrainingRuns {
 protected:
  /// Runs all ranks to their end, in a folder that keeps what is there. Returns what they said.
  std::string train(const std::string& name, int ranks, int batch, const Words& more,
                    int exit = 0) const {
    std::string said;
    for (Process& rank : start(name, ranks, batch, more, true)) {
      const Result result = rank.wait();
      EXPECT_EQ(result.exit, exit) << result.err;
      said += result.out + result.err;
    }
    return said;
  }
  /// The same with a folder for each rank.
  void train_apart(int ranks, const Words& more) const {
    const std::string nodes = folder_ / ("nodes" + std::to_string(ranks));
    write_text(nodes, nodes_here(ranks));
    std::vector<Process> processes;
    for (int rank = 0; rank < ranks; ++rank)
      processes.emplace_back(arguments("dist", "own" + std::to_string(rank), 12,
                                       plus({"--nodefile", nodes, "--index", std::to_string(rank),
                                             "--timeout", "20", "--momentum", "0.9"},
                                            more)));
    for (Process& process : processes) {
      const Result result = process.wait();
      EXPECT_EQ(result.exit, 0) << result.err;
    }
  }
  Weights trained(const std::string& name) const {
    return read_weights(folder_ / (name + "/checkpoint.safetensors"));
  }
};

/// The greatest difference of any weight, beside the largest of its tensor.
float distance(const Weights& weights, const Weights& wanted) {
  EXPECT_EQ(weights.size(), wanted.size());
  float most = 0.0F;
  for (const auto& [name, values] : wanted) {
    const std::vector<float>& own = weights.at(name);
    float largest = 0.0F, difference = 0.0F;
    for (std::size_t i = 0; i < values.size(); ++i) {
      largest = std::max(largest, std::abs(values[i]));
      difference = std::max(difference, std::abs(values[i] - own[i]));
    }
    most = std::max(most, difference / largest);
  }
  return most;
}

TEST_F(CutResume, GoesOnToTheSameBits) {
  const std::string statistics = network_with_statistics();
  const std::vector<Words> cases{
      {"--strategy", "pipeline", "--micro-batches", "2", "--momentum", "0.9"},
      {"--net", statistics, "--strategy", "pipeline", "--micro-batches", "2", "--stages", "2:1",
       "--momentum", "0.9", "--wire", "lossless"},
      {"--net", statistics, "--strategy", "filter", "--optimizer", "adam", "--lr", "0.001"},
      {"--strategy", "hybrid", "--micro-batches", "2", "--sync", "split", "--momentum", "0.9"},
      {"--strategy", "pipeline", "--stages", "1:2", "--micro-batches", "2", "--factors", "on",
       "--optimizer", "adam", "--lr", "0.001"},
  };
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const std::string name = "case" + std::to_string(i), whole = name + "-whole";
    SCOPED_TRACE(i);
    train(whole, 3, 6, plus(cases[i], {"--batches", "8"}));
    train(name, 3, 6, plus(cases[i], {"--batches", "4", "--checkpoint-every", "2"}));
    const std::string said = train(name, 3, 6, plus(cases[i], {"--batches", "8", "--resume"}));
    EXPECT_NE(said.find("goes on after 4 steps"), std::string::npos) << said;
    EXPECT_EQ(trained(name), trained(whole));
  }
}

/// A checkpoint is of one network, however that was cut. It trains as one machine with the batch.
TEST_F(CutResume, GoesOnCutInAnotherWay) {
  const Words flags{"--momentum", "0.9"};
  const auto steps = [&](const char* number, const Words& more) {
    return plus(plus(flags, {"--sync", "split", "--batches", number, "--checkpoint-every", "2"}),
                more);
  };
  train("run", 2, 12, steps("2", {"--strategy", "pipeline", "--micro-batches", "2"}));
  train("run", 2, 12, steps("4", {"--strategy", "filter", "--resume"}));
  train("run", 3, 12, steps("6", {"--strategy", "hybrid", "--resume"}));
  train("run", 3, 12, steps("8", {"--resume"}));
  train("run", 3, 12, steps("10", {"--strategy", "pipeline", "--stages", "2:1", "--resume"}));
  // The first rank's part is less of what it had, then more.
  train("run", 2, 12, steps("12", {"--strategy", "pipeline", "--stages", "1:1@fc1", "--resume"}));
  train("run", 2, 12, steps("14", {"--strategy", "pipeline", "--stages", "1:1@conv2", "--resume"}));
  train("run", 2, 12, steps("16", {"--strategy", "pipeline", "--stages", "1:1@fc1", "--resume"}));
  EXPECT_LT(distance(trained("run"), alone(12, plus(flags, {"--batches", "16"}))), 2e-4F);
}

/// Every rank has a folder of its own, and is sent the parts that it lacks.
TEST_F(CutResume, PartsAreSentToThoseWhoNeedThem) {
  const Words flags{"--net", network_with_statistics(), "--sync", "split"};
  train_apart(2,
              plus(flags, {"--strategy", "pipeline", "--batches", "2", "--checkpoint-every", "2"}));
  train_apart(3, plus(flags, {"--strategy", "filter", "--batches", "4", "--resume"}));
  train_apart(3, plus(flags, {"--batches", "6", "--resume"}));
  const Weights weights = trained("own0");
  for (const auto& [name, values] : weights)
    for (const float value : values) ASSERT_TRUE(std::isfinite(value)) << name;
}

/// A worker of a central server owns nothing, and nobody asks for its part.
TEST_F(CutResume, RanksThatOwnedNothingAreNotMissed) {
  const Words flags{"--sync", "split", "--server", "central"};
  const auto steps = [&](const char* number, const Words& more) {
    return plus(plus(flags, {"--batches", number, "--checkpoint-every", "2"}), more);
  };
  const auto ranks_of = [&](int steps) {
    std::string ranks;
    for (const int rank : {0, 1, 2}) {
      const std::string name = std::to_string(rank);
      const std::string file = "own" + name + "/checkpoints/step-000000000" +
                               std::to_string(steps) + "/rank-" + name + ".safetensors";
      if (std::filesystem::exists(folder_ / file)) ranks += name;
    }
    return ranks;
  };
  train_apart(3, steps("2", {"--strategy", "pipeline", "--stages", "2:1"}));
  EXPECT_EQ(ranks_of(2), "02");
  train_apart(3, steps("4", {"--strategy", "pipeline", "--stages", "1:2", "--resume"}));
  EXPECT_EQ(ranks_of(4), "01");
  train_apart(3, steps("6", {"--resume"}));
  EXPECT_EQ(ranks_of(6), "0");
  train_apart(3, steps("8", {"--strategy", "filter", "--resume"}));
  const Weights wanted = alone(12, {"--momentum", "0.9", "--batches", "8"});
  EXPECT_LT(distance(trained("own0"), wanted), 2e-4F);
  // The first rank has no file, and hears from the others who had a part.
  for (const int rank : {0, 1, 2})
    std::filesystem::remove_all(folder_ / ("own" + std::to_string(rank)));
  train_apart(3, steps("4", {"--strategy", "pipeline", "--stages", "2:1"}));
  std::filesystem::rename(folder_ / "own0", folder_ / "moved");
  std::filesystem::rename(folder_ / "own1", folder_ / "own0");
  std::filesystem::rename(folder_ / "moved", folder_ / "own1");
  train_apart(3, steps("8", {"--resume"}));
  EXPECT_LT(distance(trained("own1"), wanted), 2e-4F) << "the first worker saves the weights";
}

TEST_F(CutResume, ASignalEndsAllWithACheckpoint) {
  const Words flags{"--strategy", "pipeline", "--micro-batches", "2",
                    "--momentum", "0.9",      "--batches",       "60"};
  train("whole", 3, 4, flags);
  for (const int rank : {0, 1, 2}) {
    const std::string name = "ended" + std::to_string(rank);
    SCOPED_TRACE(name);
    std::vector<Process> ranks = start(name, 3, 4, flags);
    await_bytes(folder_ / (name + "/metrics.csv"), 300);
    ranks[static_cast<std::size_t>(rank)].kill(SIGTERM);
    for (Process& each : ranks) {
      const Result result = each.wait();
      // It may have come to its end before the signal came.
      EXPECT_TRUE(result.exit == 128 + SIGTERM || result.exit == 0) << result.err;
    }
    train(name, 3, 4, plus(flags, {"--resume"}));
    EXPECT_EQ(trained(name), trained("whole"));
  }
}

TEST_F(CutResume, ALostRankCostsTheStepsSinceTheLastCheckpoint) {
  const Words flags{"--strategy", "pipeline", "--micro-batches", "2", "--momentum", "0.9"};
  const Words more = plus(flags, {"--batches", "2000", "--checkpoint-every", "3"});
  std::vector<Process> ranks = start("lost", 3, 4, more);
  await_bytes(folder_ / "lost/metrics.csv", 800);
  ranks[1].kill(SIGKILL);
  for (Process& rank : ranks) rank.wait();
  std::string newest;  // All ranks have their parts of it.
  for (const auto& step : std::filesystem::directory_iterator(folder_ / "lost/checkpoints")) {
    int whole = 0;  // The rank that was killed may have left one half written.
    for (const auto& file : std::filesystem::directory_iterator(step.path()))
      if (file.path().extension() == ".safetensors") ++whole;
    if (whole == 3) newest = std::max(newest, step.path().filename().string());
  }
  const int steps = std::stoi(newest.substr(newest.rfind('-') + 1));
  const std::string to = std::to_string(steps + 4);
  const std::string said = train("lost", 3, 4, plus(flags, {"--batches", to, "--resume"}));
  EXPECT_NE(said.find("goes on after " + std::to_string(steps) + " steps"), std::string::npos)
      << said;
  train("whole", 3, 4, plus(flags, {"--batches", to}));
  EXPECT_EQ(trained("lost"), trained("whole"));
}

}  // namespace
}  // namespace duplex::tools::testing
