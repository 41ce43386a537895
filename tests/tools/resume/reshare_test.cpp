// Ranks that pause between epochs to share the samples of a step out anew (--reshare).
#include <signal.h>

#include <cmath>

#include "tests/tools/training_runs.h"

namespace duplex::tools::testing {
namespace {

using Words = std::vector<std::string>;

class Reshare : public TrainingRuns {
 protected:
  /// Returns the norm of the difference of two trainings over the norm of the first.
  static double distance(const Weights& a, const Weights& b) {
    double between = 0.0, norm = 0.0;
    for (const auto& [name, values] : a)
      for (std::size_t i = 0; i < values.size(); ++i) {
        const double difference = static_cast<double>(values[i]) - b.at(name).at(i);
        between += difference * difference;
        norm += static_cast<double>(values[i]) * values[i];
      }
    return std::sqrt(between / norm);
  }
  static int count(const std::string& text, const std::string& what) {
    int found = 0;
    for (auto at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++found;
    return found;
  }
  Weights trained(const std::string& name) const {
    return read_weights(folder_ / (name + "/checkpoint.safetensors"));
  }
};

/// 96 images in steps of 12: an epoch is 8 steps. Shares differ between the parts of the training
/// by as much as the machine was disturbed, and its result by rounding. oneDNN's convolutions round
/// otherwise for another batch, so that another one of equal values in a pool's window may be the
/// largest, by which a result differs as much as by a step; the reference's do not.
TEST_F(Reshare, TrainsWhatATrainingWithoutPausesDoes) {
  for (const Words& mode :
       {Words{}, Words{"--server", "central"}, Words{"--sync", "split", "--momentum", "0.9"}}) {
    const int ranks = mode.empty() || mode[0] == "--sync" ? 2 : 3;
    const int batch = !mode.empty() && mode[0] == "--sync" ? 12 : 6;
    const std::string name = "run" + std::to_string(++runs_);
    SCOPED_TRACE(name);
    const Words flags = plus(mode, {"--epochs", "3", "--device", "reference"});
    const Weights whole = together(ranks, batch, flags);
    for (Process& rank :
         start(name, ranks, batch, plus(flags, {"--share", "speeds", "--reshare", "1"}))) {
      const Result result = rank.wait();
      EXPECT_EQ(result.exit, 0) << result.err;
      EXPECT_EQ(count(result.err, "to share a step out anew"), 2) << result.err;
      for (const char* steps : {"8", "16"})
        EXPECT_NE(result.err.find(std::string("goes on after ") + steps + " steps"),
                  std::string::npos)
            << result.err;
      EXPECT_EQ(count(result.err, "each worker's part of a step is"), 3) << result.err;
    }
    const std::string rows = read_text(folder_ / (name + "/metrics.csv"));
    EXPECT_EQ(std::count(rows.begin(), rows.end(), '\n'), 25);
    EXPECT_LT(distance(trained(name), whole), 1e-6);
  }
}

TEST_F(Reshare, ASignalBetweenItsPartsEndsIt) {
  const Words flags{"--epochs", "1000", "--share", "auto", "--reshare", "1"};
  std::vector<Process> ranks = start("run", 2, 6, flags);
  await_bytes(folder_ / "run/metrics.csv", 2000);
  ranks[1].kill(SIGTERM);
  for (Process& rank : ranks) {
    const Result result = rank.wait();
    // The signal may come while the ranks meet again after a pause, whose checkpoint is there.
    const bool met_again =
        result.exit == 1 && result.err.find(
                                "stopped by SIGTERM while the ranks met again; the "
                                "same command with --resume goes on") != std::string::npos;
    EXPECT_TRUE(result.exit == 143 || met_again) << result.exit << ": " << result.err;
  }
}

TEST_F(Reshare, BadFlagsAreRefused) {
  write_two_nodes();
  const auto refuses = [&](const Words& more, const std::string& why) {
    const Result result = run(
        arguments("dist", "run", 6, plus({"--nodefile", folder_ / "nodes", "--index", "0"}, more)));
    EXPECT_EQ(result.exit, 2) << result.err;
    EXPECT_NE(result.err.find(why), std::string::npos) << result.err;
  };
  refuses({"--reshare", "1"}, "--reshare goes with --share speeds or auto");
  refuses({"--reshare", "0", "--share", "auto"}, "--reshare");
  refuses({"--reshare", "1", "--share", "auto", "--device", "replay:0.1", "--batches", "4"},
          "--reshare needs computing");
}

}  // namespace
}  // namespace duplex::tools::testing
