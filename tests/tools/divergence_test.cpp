// Trainings and tests that meet numbers which are not finite, and data that cannot be tested on.
#include <algorithm>
#include <filesystem>
#include <limits>

#include "tests/tools/training_runs.h"

namespace duplex::tools::testing {
namespace {

class Divergence : public TrainingRuns {
 protected:
  /// Weights of one batch's training, with one element spoilt.
  std::string spoilt_checkpoint(const std::string& parameter) const {
    const std::string sound = folder_ / "sound.safetensors",
                      spoilt = folder_ / "spoilt.safetensors";
    EXPECT_EQ(run(arguments("local", "sound", 16, {"--batches", "1", "--save", sound})).exit, 0);
    Weights weights = read_weights(sound);
    weights.at(parameter)[0] = std::numeric_limits<float>::quiet_NaN();
    std::vector<SafetensorsEntry> entries;
    const SafetensorsFile file(sound);
    for (const SafetensorsEntry& entry : file.entries())
      entries.push_back({entry.name, entry.shape});
    save_safetensors(spoilt, entries, {}, [&](std::size_t index, float* values) {
      const std::vector<float>& from = weights.at(entries[index].name);
      std::copy(from.begin(), from.end(), values);
    });
    return spoilt;
  }
};

TEST_F(Divergence, OutputsThatAreNotFiniteAreNeverRight) {
  for (const char* device : {"cpu", "reference"}) {
    for (const char* parameter : {"fc2.bias", "conv1.weight"}) {
      SCOPED_TRACE(std::string(device) + ", " + parameter);
      const Result result =
          run(arguments("local", "nan", 16,
                        {"--device", device, "--weights", spoilt_checkpoint(parameter), "--epochs",
                         "0", "--accuracy"}));
      EXPECT_EQ(result.exit, 1);
      EXPECT_NE(result.out.find("top-1 0.00%, top-5 0.00% of 20 test pictures (the outputs for 20 "
                                "are not finite)"),
                std::string::npos)
          << result.out;
      EXPECT_NE(result.err.find(parameter), std::string::npos) << result.err;
      EXPECT_NE(read_text(folder_ / "nan/summary.json").find("\"not_finite\": 20"),
                std::string::npos);
      EXPECT_EQ(run({"report", folder_ / "nan"}).exit, 0);
    }
  }
}

TEST_F(Divergence, IsSeenInTheSameStepOnEveryDevice) {
  for (const char* device : {"cpu", "reference"}) {
    SCOPED_TRACE(device);
    const Result result =
        run(arguments("local", "huge", 16, {"--device", device, "--lr", "1e30", "--epochs", "4"}));
    EXPECT_EQ(result.exit, 1);
    EXPECT_NE(result.err.find("step 1: the loss is no longer finite"), std::string::npos)
        << result.err;
  }
}

/// Who notices first says so; the others learn from it, or notice too.
TEST_F(Divergence, EndsEveryRank) {
  int noticed = 0;
  for (Process& process : start("huge", 2, 8, {"--lr", "1e30", "--epochs", "4"})) {
    const Result result = process.wait();
    EXPECT_TRUE(result.exit == 1 || result.exit == 3) << result.exit << ": " << result.err;
    const bool said = result.err.find("step 1: the loss is no longer finite") != std::string::npos;
    EXPECT_EQ(said, result.exit == 1) << result.err;
    noticed += said ? 1 : 0;
  }
  EXPECT_GE(noticed, 1);
}

TEST_F(Divergence, NothingToTestOnIsSaidBeforeTheTraining) {
  std::filesystem::remove(data_ / "t10k-images-idx3-ubyte");
  std::filesystem::remove(data_ / "t10k-labels-idx1-ubyte");
  for (const char* flag : {"--accuracy", "--test-every=1"}) {
    const Result result =
        run(arguments("local", "untested", 16, {"--test-fraction", "0", "--epochs", "2", flag}));
    EXPECT_EQ(result.exit, 2) << result.err;
    EXPECT_NE(result.err.find("leaves nothing to test with --test-fraction 0"), std::string::npos)
        << result.err;
    EXPECT_FALSE(std::filesystem::exists(folder_ / "untested"));
  }
}

}  // namespace
}  // namespace duplex::tools::testing
