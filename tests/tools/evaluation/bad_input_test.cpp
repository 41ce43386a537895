// Images, weights and data sets that classify and evaluate cannot use are answered in one line.
#include <sys/stat.h>

#include <cmath>
#include <limits>

#include "core/files/safetensors.h"
#include "tests/tools/evaluation/image_folder.h"

namespace duplex::tools::testing {
namespace {

class BadInput : public ImageFolder {
 protected:
  BadInput() {
    write_images(classes_, 4);
    weights_ = train({}, 1);
  }

  Result classify(const std::string& image, const std::vector<std::string>& more = {}) const {
    return run(plus({"classify", "--weights", weights_, "--threads", "1", image}, more));
  }
  Result evaluate(const std::string& weights, const std::string& data,
                  const std::vector<std::string>& more = {}) const {
    return run(plus({"evaluate", "--weights", weights, "--datadir", data, "--threads", "1"}, more));
  }

  /// Writes the weights anew, with other metadata, or other values of the last array.
  std::string changed(const std::string& name, const std::map<std::string, std::string>& metadata,
                      float last = 0.0F) const {
    const SafetensorsFile file(weights_);
    save_safetensors(folder_ / name, file.entries(), metadata, [&](std::size_t i, float* values) {
      file.read(file.entries()[i], values);
      if (last != 0.0F) values[0] = last;
    });
    return folder_ / name;
  }

  std::string weights_;
};

TEST_F(BadInput, ImagesAreNamedAndTheOthersClassified) {
  write_text(folder_ / "empty.jpg", "");
  write_text(folder_ / "text.png", "not an image");
  const std::string whole = read_text(data_ / "a cat/0.png");
  write_text(folder_ / "cut.png", whole.substr(0, whole.size() / 2));
  expect_one_line(classify(folder_ / "none.jpg"), 1, {"none.jpg", "No such file"});
  expect_one_line(classify(data_ / "a cat"), 1, {"a cat", "folder"});
  expect_one_line(classify(folder_ / "empty.jpg"), 1, {"empty.jpg", "empty"});
  expect_one_line(classify(folder_ / "text.png"), 1, {"text.png", "neither a JPEG nor a PNG"});
  expect_one_line(classify(folder_ / "cut.png"), 1, {"cut.png", "truncated"});
  const Result mixed =
      classify(data_ / "a cat/0.png", {folder_ / "cut.png", data_ / "a cat/1.png"});
  expect_one_line(mixed, 1, {"cut.png", "truncated"});
  EXPECT_NE(mixed.out.find("a cat/0.png\n"), std::string::npos) << mixed.out;
  EXPECT_NE(mixed.out.find("a cat/1.png\n"), std::string::npos) << mixed.out;
  EXPECT_EQ(mixed.out.find("cut.png"), std::string::npos) << mixed.out;
}

TEST_F(BadInput, ArgumentsThatAreMissingEndWithTwo) {
  expect_one_line(run({"classify", "--weights", weights_}), 2, {"IMAGE"});
  expect_one_line(run({"classify", data_ / "a cat/0.png"}), 2, {"--weights"});
  expect_one_line(run({"evaluate", "--weights", weights_}), 2, {"--datadir"});
  expect_one_line(classify(data_ / "a cat/0.png", {"--top", "0"}), 2, {"--top"});
  expect_one_line(evaluate(weights_, data_.path(), {"--part", "half"}), 2, {"--part", "train"});
  expect_one_line(classify(data_ / "a cat/0.png", {"--device", "abacus"}), 2, {"abacus"});
}

TEST_F(BadInput, WeightsThatDoNotFitAreRefused) {
  const std::string image = data_ / "a cat/0.png";
  expect_one_line(classify(image, {"--net", "lenet", "--classes", "4"}), 1,
                  {"does not fit LeNet", "missing"});
  expect_one_line(classify(image, {"--classes", "5"}), 1,
                  {"fc.weight (4x512 in the file, 5x512 in the network)"});
  const auto refused = [&](const std::string& weights, const std::vector<std::string>& parts,
                           int exit = 1) {
    expect_one_line(run({"classify", "--weights", weights, image}), exit, parts);
    expect_one_line(evaluate(weights, data_.path()), exit, parts);
  };
  refused(folder_ / "none.safetensors", {"none.safetensors", "No such file"});
  refused(data_.path(), {data_.path(), "not a regular file"});
  refused(image, {"a cat/0.png", "no safetensors file"});
  write_text(folder_ / "empty", "");
  refused(folder_ / "empty", {"no safetensors file"});
  const auto metadata = SafetensorsFile(weights_).metadata();
  refused(changed("nan", metadata, std::numeric_limits<float>::quiet_NaN()),
          {"nan: conv1.weight is not finite"});
  refused(changed("infinite", metadata, std::numeric_limits<float>::infinity()),
          {"infinite: conv1.weight is not finite"});
  // Sums of products of such weights are not finite.
  const std::string huge = changed("huge", metadata, 3e38F);
  expect_one_line(run({"classify", "--weights", huge, image}), 1, {"a cat/0.png", "not finite"});
  EXPECT_EQ(evaluate(huge, data_.path()).exit, 1);
}

TEST_F(BadInput, DamagedNotesAreRefused) {
  const std::string image = data_ / "a cat/0.png";
  std::map<std::string, std::string> metadata = SafetensorsFile(weights_).metadata();
  const nlohmann::json note = nlohmann::json::parse(metadata.at("training"));
  const auto refused = [&](const std::string& text, const std::vector<std::string>& parts) {
    metadata["training"] = text;
    expect_one_line(run({"classify", "--weights", changed("damaged", metadata), image}), 1, parts);
  };
  const auto with = [&](const char* key, const nlohmann::json& value) {
    nlohmann::json other = note;
    other[key] = value;
    return other.dump();
  };
  nlohmann::json nameless =
      note;  // Without names nothing tells that the data set has more classes.
  nameless["class_names"] = nlohmann::json::array();
  nameless["classes"] = 1;
  metadata["training"] = nameless.dump();
  expect_one_line(evaluate(changed("nameless", metadata), data_.path()), 1,
                  {"its 1 classes are fewer than the"});
  refused("{", {"damaged", "no JSON"});
  refused("[]", {"damaged", "no object"});
  refused(with("version", 2), {"another version"});
  refused(with("classes", 0), {"damaged", "0 classes"});
  refused(with("classes", 3), {"damaged", "more names than classes"});
  refused(with("class_names", 3), {"damaged", "class_names"});
  refused(with("input", "1x3x16x17"), {"damaged", "1x3x16x17"});
  refused(with("input", "1x3x99999999999x99999999999"), {"damaged", "input"});
  refused(with("stddev", {0.2, 0.0, 0.2}), {"damaged", "stddev"});
  refused(with("mean", {0.2}), {"damaged", "mean"});
  refused(with("batch", 0), {"damaged", "batch"});
  refused(with("test_fraction", 1.5), {"damaged", "test_fraction"});
}

/// Files, and the arrays of weights, may have names of any bytes.
TEST_F(BadInput, NamesDoNotSteerTheTerminal) {
  const auto expect_plain = [](const Result& result, int exit) {
    EXPECT_EQ(result.exit, exit) << result.err;
    const std::string all = result.out + result.err;
    EXPECT_EQ(all.find('\x1b'), std::string::npos) << all;
    EXPECT_NE(all.find("?[2J"), std::string::npos) << all;
  };
  const auto metadata = SafetensorsFile(weights_).metadata();
  const std::string renamed = folder_ / "renamed";
  {
    const SafetensorsFile file(weights_);
    std::vector<SafetensorsEntry> entries = file.entries();
    entries.back().name = "\x1b[2J";
    save_safetensors(renamed, entries, metadata,
                     [&](std::size_t i, float* values) { file.read(file.entries()[i], values); });
  }
  expect_plain(run({"classify", "--weights", renamed, data_ / "a cat/0.png"}), 1);
  write_text(data_ / "a cat/\x1b[2J.png", "not an image");
  write_text(data_ / "a cat/\x1b[2J.txt", "not an image");
  const std::vector<std::string> local{"local",      "--net",     net_, "--datadir",
                                       data_.path(), "--batch",   "4",  "--batches",
                                       "1",          "--threads", "1",  "--logdir"};
  expect_plain(run(plus(local, {folder_ / "run2"})), 0);
  expect_plain(run(plus(local, {folder_ / "run3", "--strict"})), 1);
  expect_plain(run({"pack", "--datadir", data_.path(), "--output", folder_ / "packed"}), 0);
}

/// To open a pipe waits for somebody who writes to it, so a network that weights name is a file.
TEST_F(BadInput, WeightsThatNameAPipeAreRefused) {
  const std::string pipe = folder_ / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  nlohmann::json note = nlohmann::json::parse(SafetensorsFile(weights_).metadata().at("training"));
  note["network"] = pipe;
  note.erase("network_file");
  for (const std::map<std::string, std::string>& metadata :
       {std::map<std::string, std::string>{{"network", pipe}, {"training", note.dump()}},
        {{"network", pipe}}})
    expect_one_line(
        run({"classify", "--weights", changed("piped", metadata), data_ / "a cat/0.png"}), 2,
        {"network file " + pipe, "it is no regular file"});
}

TEST_F(BadInput, OtherClassesAreNamed) {
  const TemporaryFolder other;
  std::filesystem::copy(data_.path(), other.path(), std::filesystem::copy_options::recursive);
  std::filesystem::rename(other / "b,dog", other / "b,wolf");
  expect_one_line(evaluate(weights_, other.path()), 1,
                  {"class 1 is 'b,wolf' in the data set, and class 1 is 'b,dog' in the weights"});
  expect_one_line(classify(data_ / "a cat/0.png", {"--datadir", other.path()}), 1,
                  {"'b,wolf'", "'b,dog'"});
  std::filesystem::rename(other / "b,wolf", other / "b,dog");
  std::filesystem::remove_all(other / "d m\xC3\xBCll");
  expect_one_line(evaluate(weights_, other.path()), 1,
                  {"the 3 classes", "the 4 that", "no class 3", "class 3 is 'd m\xC3\xBCll'"});
}

TEST_F(BadInput, ALogdirIsThatOfARunOfTheNetwork) {
  expect_one_line(evaluate(weights_, data_.path(), {"--logdir", folder_ / "none"}), 1,
                  {"none", "config.json"});
  ASSERT_EQ(run({"simulate", "--net", "lenet", "--t-grad", "0.1", "--rate", "1Gbit/s", "--workers",
                 "2", "--batches", "3", "--logdir", folder_ / "lenet"})
                .exit,
            0);
  expect_one_line(evaluate(weights_, data_.path(), {"--logdir", folder_ / "lenet"}), 2,
                  {"LeNet", "Small"});
  EXPECT_FALSE(std::filesystem::exists(folder_ / "lenet/evaluation.json"));
}

}  // namespace
}  // namespace duplex::tools::testing
