// A small data set of PNG files, a folder a class, and a small network for it.
#pragma once
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

#include "datasets/decoding/png.h"
#include "tests/temporary_folder.h"
#include "tests/tools/program.h"

namespace duplex::tools::testing {

constexpr std::int64_t drawn_size = 24;  ///< Height and width of the images; the network's is 16.

inline void write_bytes(const std::string& path, const std::vector<std::uint8_t>& bytes) {
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
}

/// An image of a class: a bright stripe in a place of its own under so much noise that a network
/// confuses some of them.
inline std::vector<std::uint8_t> draw_image(std::size_t number, std::size_t classes,
                                            std::uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<std::uint8_t> planes(static_cast<std::size_t>(3 * drawn_size * drawn_size));
  for (std::uint8_t& value : planes) value = static_cast<std::uint8_t>(random() % 200);
  const std::size_t size = static_cast<std::size_t>(drawn_size);
  const std::size_t row = number * size / classes;
  for (std::size_t x = 0; x < size; ++x) planes[(number % 3 * size + row) * size + x] = 255;
  return datasets::encode_png(planes.data(), {1, 3, drawn_size, drawn_size});
}

/// A data set, a network in a file, and trainings of it.
class ImageFolder : public ::testing::Test {
 protected:
  /// Writes `each` images of each class.
  void write_images(const std::vector<std::string>& classes, std::size_t each) const {
    for (std::size_t i = 0; i < classes.size(); ++i) {
      std::filesystem::create_directories(data_ / classes[i]);
      for (std::size_t j = 0; j < each; ++j)
        write_bytes(data_ / classes[i] + "/" + std::to_string(j) + ".png",
                    draw_image(i, classes.size(), static_cast<std::uint32_t>(1000 * i + j)));
    }
    write_text(net_,
               "network Small\ninput 16x16x3\nclasses 4\nconv1 conv 3x3/2 same, 8 filters, relu\n"
               "fc linear classes outputs\nsoftmax softmax\nend\n");
  }

  /// Trains, and returns the path of the weights.
  std::string train(const std::vector<std::string>& more = {}, int epochs = 2) const {
    std::filesystem::remove_all(folder_ / "run");
    const Result result =
        run(plus({"local", "--net", net_, "--datadir", data_.path(), "--logdir", folder_ / "run",
                  "--threads", "1", "--batch", "8", "--lr", "0.02", "--epochs",
                  std::to_string(epochs), "--test-fraction", "0.3", "--accuracy"},
                 more));
    EXPECT_EQ(result.exit, 0) << result.err;
    return folder_ / "run/checkpoint.safetensors";
  }

  static nlohmann::json json_of(const std::vector<std::string>& arguments) {
    const Result result = run(plus(arguments, {"--threads", "1", "--output", "json"}));
    EXPECT_EQ(result.exit, 0) << result.err;
    return nlohmann::json::parse(result.out, nullptr, false);
  }

  nlohmann::json evaluated(const std::string& weights,
                           const std::vector<std::string>& more = {}) const {
    return json_of(plus({"evaluate", "--weights", weights, "--datadir", data_.path()}, more));
  }

  const std::vector<std::string> classes_{"a cat", "b,dog", "c \"horse\"", "d m\xC3\xBCll"};
  TemporaryFolder data_, folder_;
  const std::string net_ = folder_ / "small.net";
};

/// Expects an exit code, and nothing but one line on standard error, which has all of `parts`.
inline void expect_one_line(const Result& result, int exit, const std::vector<std::string>& parts) {
  EXPECT_EQ(result.exit, exit) << result.err;
  EXPECT_EQ(result.err.rfind("duplex: ", 0), 0U) << result.err;
  EXPECT_EQ(result.err.find('\n'), result.err.size() - 1) << result.err;
  for (const std::string& part : parts)
    EXPECT_NE(result.err.find(part), std::string::npos) << part << "\n" << result.err;
}

}  // namespace duplex::tools::testing
