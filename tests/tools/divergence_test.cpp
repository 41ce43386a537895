// Trainings and tests that meet numbers which are not finite, and data without usable test images.
#include <algorithm>
#include <filesystem>
#include <iterator>
#include <limits>

#include "tests/tools/training_runs.h"

namespace duplex::tools::testing {
namespace {

class Divergence : public TrainingRuns {
 protected:
  /// Writes the weights that one batch's training leaves, with one element set to NaN.
  std::string spoilt_checkpoint(const std::string& parameter) const {
    const std::string sound = folder_ / "sound.safetensors";
    std::string spoilt = folder_ / "spoilt.safetensors";
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
      EXPECT_NE(result.out.find("top-1 0.00%, top-5 0.00% of 20 test images (the outputs for 20 "
                                "are not finite)"),
                std::string::npos)
          << result.out;
      EXPECT_NE(result.err.find(parameter), std::string::npos) << result.err;
      EXPECT_NE(read_text(folder_ / "nan/summary.json").find("\"not_finite\": 20"),
                std::string::npos);
      EXPECT_EQ(run({"report", folder_ / "nan"}).exit, 0);
      EXPECT_NE(read_text(folder_ / "nan/report.html")
                    .find("nan: the outputs for 20 of 20 test images are not finite"),
                std::string::npos);
    }
  }
}

TEST_F(Divergence, OutputsThatAreNotFiniteAreCountedAmongSeveralRanksToo) {
  const std::vector<std::string> more{"--weights", spoilt_checkpoint("fc2.bias"), "--epochs", "0",
                                      "--accuracy"};
  bool leads = true;
  for (Process& process : start("nan-ranks", 2, 8, more)) {
    const Result result = process.wait();
    EXPECT_EQ(result.exit, 1);
    EXPECT_NE(result.err.find("fc2.bias is not finite"), std::string::npos) << result.err;
    EXPECT_EQ(result.out.find("(the outputs for 20 are not finite)") != std::string::npos, leads)
        << result.out;
    leads = false;
  }
}

TEST_F(Divergence, DoesNotStartFromWhatIsNotFinite) {
  const std::string spoilt = spoilt_checkpoint("fc2.bias");
  for (const char* epochs : {"0", "1"}) {
    const Result result =
        run(arguments("local", "spoilt", 16, {"--weights", spoilt, "--epochs", epochs}));
    EXPECT_EQ(result.exit, 1);
    EXPECT_NE(result.err.find(spoilt + ": fc2.bias is not finite"), std::string::npos)
        << result.err;
  }
  for (Process& process : start("spoilt", 2, 8, {"--weights", spoilt})) {
    const Result result = process.wait();
    EXPECT_EQ(result.exit, 1);
    EXPECT_NE(result.err.find(spoilt + ": fc2.bias is not finite"), std::string::npos)
        << result.err;
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

/// The rank that notices first says so; the others are told its reason and code, or notice too.
TEST_F(Divergence, EndsEveryRank) {
  for (Process& process : start("huge", 3, 8, {"--lr", "1e30", "--epochs", "4"})) {
    const Result result = process.wait();
    EXPECT_EQ(result.exit, 1) << result.err;
    EXPECT_NE(result.err.find("step 1: the loss is no longer finite"), std::string::npos)
        << result.err;
  }
}

/// A grey PNG of 2x2 pixels. In the bad one all checksums are right, but its pixels are in a
/// deflate block of the reserved kind, which only the decoder finds out.
std::string image(bool good) {
  static constexpr unsigned char sound[] = {
      0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A, 0x00, 0x00, 0x00, 0x0D, 0x49, 0x48, 0x44,
      0x52, 0x00, 0x00, 0x00, 0x02, 0x00, 0x00, 0x00, 0x02, 0x08, 0x00, 0x00, 0x00, 0x00, 0x57,
      0xDD, 0x52, 0xF8, 0x00, 0x00, 0x00, 0x11, 0x49, 0x44, 0x41, 0x54, 0x78, 0x01, 0x01, 0x06,
      0x00, 0xF9, 0xFF, 0x00, 0x10, 0xE0, 0x00, 0xE0, 0x10, 0x05, 0xA6, 0x01, 0xE1, 0xA2, 0xD7,
      0xC0, 0x81, 0x00, 0x00, 0x00, 0x00, 0x49, 0x45, 0x4E, 0x44, 0xAE, 0x42, 0x60, 0x82};
  static constexpr unsigned char reserved[] = {
      0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A, 0x00, 0x00, 0x00, 0x0D, 0x49, 0x48,
      0x44, 0x52, 0x00, 0x00, 0x00, 0x02, 0x00, 0x00, 0x00, 0x02, 0x08, 0x00, 0x00, 0x00,
      0x00, 0x57, 0xDD, 0x52, 0xF8, 0x00, 0x00, 0x00, 0x09, 0x49, 0x44, 0x41, 0x54, 0x78,
      0x01, 0x07, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0xE3, 0x46, 0xEE, 0x8E, 0x00, 0x00,
      0x00, 0x00, 0x49, 0x45, 0x4E, 0x44, 0xAE, 0x42, 0x60, 0x82};
  return good ? std::string(std::begin(sound), std::end(sound))
              : std::string(std::begin(reserved), std::end(reserved));
}

TEST_F(Divergence, UnreadableTestImagesAreLeftOutAndNamed) {
  const TemporaryFolder images;
  for (const bool good : {true, false}) {
    const std::string kind = good ? "good" : "bad";
    std::filesystem::create_directory(images / kind);
    for (int i = 0; i < 10; ++i)
      write_text(images / (kind + "/" + std::to_string(i) + ".png"), image(good));
  }
  const auto test = [&](const std::vector<std::string>& more) {
    return run(arguments_on(images.path(), "local", "unreadable", 4,
                            plus({"--epochs", "0", "--accuracy"}, more)));
  };
  const Result lenient = test({});
  EXPECT_EQ(lenient.err.find("replaced"), std::string::npos) << lenient.err;
  EXPECT_EQ(lenient.exit, 0) << lenient.err;
  EXPECT_NE(lenient.out.find("of 2 test images"), std::string::npos) << lenient.out;
  EXPECT_NE(lenient.err.find("test images left out, as they cannot be read: 2\n  bad/"),
            std::string::npos)
      << lenient.err;
  EXPECT_NE(read_text(folder_ / "unreadable/summary.json").find("\"unreadable\": 2"),
            std::string::npos);
  const Result strict = test({"--strict"});
  EXPECT_EQ(strict.exit, 1);
  EXPECT_NE(strict.err.find("bad/"), std::string::npos) << strict.err;
  std::filesystem::copy(images / "bad/0.png", images / "good/10.png");
  std::filesystem::remove_all(images / "bad");
  const Result pack = run({"pack", "--input", "28", "--grey", "--datadir", images.path(),
                           "--output", folder_ / "packed"});
  EXPECT_EQ(pack.exit, 0) << pack.err;
  EXPECT_NE(pack.out.find("good/10.png"), std::string::npos) << pack.out;
}

/// The weights that the last step has made are looked at, too, so none are saved. Measurements of
/// ranks that have ended together are written all the same.
TEST_F(Divergence, OfTheLastStepIsSeen) {
  const Result alone = run(arguments("local", "last", 16, {"--lr", "3e38", "--batches", "1"}));
  EXPECT_EQ(alone.exit, 1);
  EXPECT_NE(alone.err.find("is no longer finite; try a smaller --lr"), std::string::npos);
  for (const char* server : {"distributed", "central"}) {
    const std::string name = std::string("last-") + server;
    for (Process& process :
         start(name, 3, 8, {"--lr", "3e38", "--batches", "1", "--server", server})) {
      const Result result = process.wait();
      EXPECT_EQ(result.exit, 1) << server;
      EXPECT_NE(result.err.find("is no longer finite; try a smaller --lr"), std::string::npos)
          << result.err;
    }
    for (const char* file : {"/summary.json", "/rank-0.json", "/rank-2.json"})
      EXPECT_TRUE(std::filesystem::exists(folder_ / name + file)) << file;
    EXPECT_FALSE(std::filesystem::exists(folder_ / name + "/checkpoint.safetensors"));
  }
  EXPECT_FALSE(std::filesystem::exists(folder_ / "last/checkpoint.safetensors"));
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
