// Trainings that average their weights: the average against one made of the weights after each
// update, and the same alone and together, resumed, and where a rank is killed.
#include <cmath>
#include <csignal>
#include <sstream>

#include "tests/tools/training_runs.h"

namespace duplex::tools::testing {
namespace {

using Words = std::vector<std::string>;

class Ema : public TrainingRuns {
 protected:
  const Words averaged{"--ema", "0.8", "--lr", "0.05", "--momentum", "0.9"};

  Weights average_of(const std::string& name) const {
    return read_weights(folder_ / (name + "/ema.safetensors"));
  }
  void train_alone(const std::string& name, int batch, const Words& more) const {
    const Result result = run(arguments("local", name, batch, more));
    ASSERT_EQ(result.exit, 0) << result.err;
  }
  std::string train(const std::string& name, int ranks, int batch, const Words& more,
                    bool keep = false) const {
    std::string said;
    for (Process& process : start(name, ranks, batch, more, keep)) {
      const Result result = process.wait();
      EXPECT_EQ(result.exit, 0) << result.err;
      said += result.err;
    }
    return said;
  }
  /// The last cell of the last row.
  std::string last_loss(const std::string& name) const {
    std::string text = read_text(folder_ / (name + "/accuracy.csv"));
    text.resize(text.rfind(','));  // Behind it is a time.
    return text.substr(text.rfind(',') + 1);
  }
};

TEST_F(Ema, IsTheAverageOfTheWeightsAfterEachUpdate) {
  std::map<std::string, std::vector<double>> expected;
  for (int updates = 1; updates <= 5; ++updates) {
    const std::string name = "after" + std::to_string(updates);
    train_alone(name, 8, plus(averaged, {"--batches", std::to_string(updates)}));
    for (const auto& [parameter, values] :
         read_weights(folder_ / (name + "/checkpoint.safetensors"))) {
      std::vector<double>& average = expected[parameter];
      if (updates == 1) average.assign(values.begin(), values.end());
      for (std::size_t i = 0; i < values.size(); ++i)
        average[i] = 0.8 * average[i] + 0.2 * double{values[i]};
    }
  }
  const Weights found = average_of("after5");
  ASSERT_EQ(found.size(), expected.size());
  for (const auto& [parameter, values] : found)
    for (std::size_t i = 0; i < values.size(); ++i)
      ASSERT_NEAR(values[i], expected[parameter][i], 1e-6) << parameter << " " << i;
}

TEST_F(Ema, TestsAreOfTheAverage) {
  train_alone("run", 8, plus(averaged, {"--epochs", "2", "--test-every", "1"}));
  train_alone("again", 8,
              {"--batches", "0", "--accuracy", "--weights", folder_ / "run/ema.safetensors"});
  train_alone(
      "weights", 8,
      {"--batches", "0", "--accuracy", "--weights", folder_ / "run/checkpoint.safetensors"});
  EXPECT_EQ(last_loss("run"), last_loss("again"));
  EXPECT_NE(last_loss("run"), last_loss("weights"));
  // A test between two steps changes nothing.
  train_alone("untested", 8, plus(averaged, {"--epochs", "2"}));
  EXPECT_EQ(average_of("run"), average_of("untested"));
}

TEST_F(Ema, TogetherIsTheSameAsAlone) {
  const Words flags = plus(averaged, {"--epochs", "2"});
  train_alone("alone", 8, plus(flags, {"--accumulate", "3", "--accuracy"}));
  const Weights expected = average_of("alone");
  const std::vector<std::pair<int, Words>> modes{{3, {}},
                                                 {4, {"--server", "central"}},
                                                 {3, {"--overlap", "off"}},
                                                 {3, {"--wire", "lossless"}},
                                                 {3, {"--test-every", "1"}}};
  for (const auto& [ranks, mode] : modes) {
    train("together", ranks, 8, plus(flags, plus(mode, {"--accuracy"})));
    EXPECT_EQ(average_of("together"), expected) << (mode.empty() ? "" : mode[0]);
    EXPECT_EQ(last_loss("together"), last_loss("alone"));
  }
  train("split", 3, 24, plus(flags, {"--sync", "split"}));
  EXPECT_EQ(average_of("split"), expected);
}

TEST_F(Ema, GoesOnToTheSameBits) {
  const Words flags = plus(averaged, {"--net", network_with_statistics(), "--batches", "12"});
  train_alone("whole", 8, flags);
  const Words first{"--checkpoint-every", "4"};
  train_alone("parts", 8, plus(flags, first));
  std::filesystem::remove_all(folder_ / "parts/checkpoints/step-0000000012");
  Words rest = arguments("dist", "parts", 8, plus(flags, {"--resume"}));
  rest[0] = "local";
  const Result result = run(rest);
  ASSERT_EQ(result.exit, 0) << result.err;
  EXPECT_NE(result.err.find("goes on after 8 steps"), std::string::npos) << result.err;
  EXPECT_EQ(average_of("parts"), average_of("whole"));

  const std::vector<std::pair<int, Words>> modes{
      {3, {}}, {3, {"--server", "central"}}, {3, {"--sync", "split", "--wire", "lossless"}}};
  for (const auto& [ranks, mode] : modes) {
    SCOPED_TRACE(mode.empty() ? "" : mode.back());
    const Words all = plus(flags, mode);
    train("all", ranks, 6, all);
    train("some", ranks, 6, plus(all, first));
    std::filesystem::remove_all(folder_ / "some/checkpoints/step-0000000012");
    const std::string said = train("some", ranks, 6, plus(all, {"--resume"}), true);
    EXPECT_NE(said.find("goes on after 8 steps"), std::string::npos) << said;
    EXPECT_EQ(average_of("some"), average_of("all"));
  }
}

/// Every worker has the whole average, so another number of ranks goes on with it.
TEST_F(Ema, AnotherNumberOfRanksGoesOn) {
  const Words flags = plus(averaged, {"--sync", "split", "--batches", "12"});
  train("three", 3, 24, flags);
  train("fewer", 3, 24, plus(flags, {"--checkpoint-every", "4"}));
  std::filesystem::remove_all(folder_ / "fewer/checkpoints/step-0000000012");
  train("fewer", 2, 24, plus(flags, {"--resume"}), true);
  const Weights expected = average_of("three"), found = average_of("fewer");
  for (const auto& [parameter, values] : expected)
    for (std::size_t i = 0; i < values.size(); ++i)
      ASSERT_NEAR(found.at(parameter)[i], values[i], 1e-5) << parameter << " " << i;
}

/// When a rank is killed, the others keep the average of the step that they keep. With plain SGD
/// they keep the killed rank's chunks, too, and their own average stands for its average.
TEST_F(Ema, GoesOnWhereARankWasKilled) {
  for (const Words& mode : {Words{"--server", "distributed", "--momentum", "0.9"},
                            Words{"--server", "distributed", "--momentum", "0"},
                            Words{"--server", "central", "--momentum", "0.9"}}) {
    SCOPED_TRACE(mode[1] + mode[3]);
    const Words flags =
        plus({"--ema", "0.8", "--lr", "0.05", "--batches", "80", "--timeout", "5"}, mode);
    train("whole", 3, 6, flags);
    std::vector<Process> ranks = start("killed", 3, 6, plus(flags, {"--checkpoint-every", "6"}));
    await_bytes(folder_ / "killed/metrics.csv", 2000);
    ranks[2].kill(SIGKILL);
    for (Process& rank : ranks) rank.wait();
    const std::string said = train("killed", 3, 6, plus(flags, {"--resume"}), true);
    EXPECT_NE(said.find("goes on after "), std::string::npos) << said;
    EXPECT_EQ(average_of("killed"), average_of("whole"));
  }
}

TEST_F(Ema, IsRefusedWhereItMakesNoSense) {
  write_two_nodes();
  const auto refused = [&](const Words& more, const std::string& why) {
    const Result result = run(plus({"dist", "--net", "lenet", "--datadir", data_.path(),
                                    "--nodefile", folder_ / "nodes", "--index", "0"},
                                   more));
    EXPECT_EQ(result.exit, 2) << result.err;
    EXPECT_NE(result.err.find(why), std::string::npos) << result.err;
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
  };
  const Words ema{"--ema", "0.9"};
  refused(plus(ema, {"--sync", "none"}), "--sync none");
  refused(plus(ema, {"--average", "2"}), "--average");
  refused(plus(ema, {"--wire", "bf16"}), "--wire lossless");
  refused(plus(ema, {"--wire", "weights:fp16"}), "--wire lossless");
  for (const char* decay : {"1", "1.5", "inf", "nan", "0", "-0.1"})
    refused({std::string("--ema=") + decay}, "--ema");
  refused({"--ema", "0.9", "--device", "replay:0.01", "--batches", "2"}, "--ema");
}

}  // namespace
}  // namespace duplex::tools::testing
