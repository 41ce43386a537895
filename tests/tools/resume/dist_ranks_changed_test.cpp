// Trainings of several ranks that go on with another number of ranks.
#include <algorithm>
#include <cmath>
#include <filesystem>

#include "tests/tools/training_runs.h"

namespace duplex::tools::testing {
namespace {

using Words = std::vector<std::string>;

class RanksChanged : public TrainingRuns {
 protected:
  /// Runs all ranks to their end. Returns what rank 0 said.
  std::string train(const std::string& name, int ranks, const Words& more, int exit = 0) const {
    std::string said;
    for (Process& rank : start(name, ranks, 6, more, true)) {
      const Result result = rank.wait();
      EXPECT_EQ(result.exit, exit) << result.err;
      if (said.empty()) said = result.out + result.err;
    }
    return said;
  }
  Weights trained(const std::string& name) const {
    return read_weights(folder_ / (name + "/checkpoint.safetensors"));
  }
  /// 8 steps on `first` ranks, up to 12 on `second`, up to 16 on `third`.
  std::string in_three_parts(const std::string& name, const Words& flags, int first, int second,
                             int third) const {
    train(name, first, plus(flags, {"--batches", "8", "--checkpoint-every", "4"}));
    train(name, second, plus(flags, {"--batches", "12", "--checkpoint-every", "4", "--resume"}));
    return train(name, third, plus(flags, {"--batches", "16", "--resume"}));
  }
};

/// Central and distributed servers, and both ways of cutting the weights, hold the training's state
/// in quite different pieces, and must come to the same bits.
TEST_F(RanksChanged, JoinGoesOnToTheSameBitsWhoeverHeldTheState) {
  for (const Words& optimiser : {Words{"--optimizer", "adam"}, Words{"--momentum", "0.9"}}) {
    SCOPED_TRACE(optimiser[1]);
    const Words central = plus(optimiser, {"--server", "central"}),
                tensors = plus(optimiser, {"--shards", "tensors"});
    const std::string said = in_three_parts("even" + optimiser[1], optimiser, 3, 2, 4);
    EXPECT_NE(said.find("goes on after 12 steps, which 2 ranks trained, with 4: an update is by 24 "
                        "images from here on"),
              std::string::npos)
        << said;
    in_three_parts("tensors" + optimiser[1], tensors, 3, 2, 4);
    in_three_parts("central" + optimiser[1], central, 4, 3, 5);
    EXPECT_EQ(trained("even" + optimiser[1]), trained("tensors" + optimiser[1]));
    EXPECT_EQ(trained("even" + optimiser[1]), trained("central" + optimiser[1]));
  }
}

/// 3 ranks see 18 images a step, 2 ranks 12, 4 ranks 24: 8 x 18 + 4 x 12 + 4 x 24 in all.
TEST_F(RanksChanged, ImagesAreCountedOn) {
  in_three_parts("run", {"--test-every", "1"}, 3, 2, 4);
  const std::string rows = read_text(folder_ / "run/metrics.csv");
  EXPECT_EQ(std::count(rows.begin(), rows.end(), '\n'), 17) << "a row for each step, and a head";
  const SafetensorsFile file(folder_ / "run/checkpoints/step-0000000016/rank-3.safetensors");
  EXPECT_EQ(file.metadata().at("samples"), std::to_string(8 * 18 + 4 * 12 + 4 * 24));
  EXPECT_EQ(file.metadata().at("ranks"), "4");
}

/// The batch is as large with any number of ranks, so only the order of summing differs.
TEST_F(RanksChanged, SplitComesToTheSameWeightsButForRounding) {
  const Words flags{"--sync", "split", "--momentum", "0.9"};
  in_three_parts("parts", flags, 3, 2, 4);
  train("whole", 3, plus(flags, {"--batches", "16"}));
  const Weights parts = trained("parts"), whole = trained("whole");
  ASSERT_EQ(parts.size(), whole.size());
  double greatest = 0.0;
  for (const auto& [name, values] : whole)
    for (std::size_t i = 0; i < values.size(); ++i)
      greatest = std::max(greatest, std::fabs(double{values[i]} - double{parts.at(name)[i]}));
  EXPECT_LT(greatest, 1e-5);
  EXPECT_GT(greatest, 0.0) << "the sums have another order";
}

TEST_F(RanksChanged, AFileThatIsMissingEndsAllAndRemovesNothing) {
  const Words flags{"--momentum", "0.9", "--checkpoint-every", "4"};
  train("run", 3, plus(flags, {"--batches", "4"}));
  const std::string folder = folder_ / "run/checkpoints/step-0000000004";
  for (const char* file : {"/rank-2.safetensors", "/rank-2-copy.safetensors"})
    std::filesystem::remove(folder + file);
  const std::string said = train("run", 2, plus(flags, {"--batches", "8", "--resume"}), 1);
  EXPECT_NE(said.find("--resume: no checkpoint is there on all ranks; steps there are on rank 0: 4 "
                      "(by 3 ranks); on rank 1: 4 (by 3 ranks); of the one after 4 steps by 3 "
                      "ranks, no rank has the part of rank 2, nor a copy of it"),
            std::string::npos)
      << said;
  for (const char* file : {"/rank-0.safetensors", "/rank-1.safetensors"})
    EXPECT_TRUE(std::filesystem::exists(folder + file)) << file;
}

TEST_F(RanksChanged, WorkersWithAStateOfTheirOwnCannotBeMoreOrFewer) {
  const Words flags{"--average", "2", "--momentum", "0.9", "--checkpoint-every", "4"};
  train("run", 3, plus(flags, {"--batches", "4"}));
  for (const int ranks : {2, 4}) {
    const std::string said = train("run", ranks, plus(flags, {"--batches", "8", "--resume"}), 2);
    EXPECT_NE(said.find("is of 3 ranks, and this run has " + std::to_string(ranks)),
              std::string::npos)
        << said;
  }
  train("run", 3, plus(flags, {"--batches", "8", "--resume"}));
}

TEST_F(RanksChanged, AveragedWeightsAloneCanBeSharedOutAnew) {
  const Words flags{"--average", "2"};
  in_three_parts("run", flags, 3, 2, 3);
  EXPECT_FALSE(trained("run").empty());
}

/// Workers take over the running statistics of the first one.
TEST_F(RanksChanged, ANetworkWithRunningStatisticsGoesOn) {
  const Words flags{"--net", network_with_statistics(), "--checkpoint-every", "2"};
  train("run", 2, plus(flags, {"--batches", "2"}));
  train("run", 3, plus(flags, {"--batches", "4", "--resume"}));
  EXPECT_FALSE(trained("run").empty());
}

}  // namespace
}  // namespace duplex::tools::testing
