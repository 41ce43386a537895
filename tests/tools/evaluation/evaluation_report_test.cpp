// evaluation.json, and the section that report makes of it.
#include <cmath>

#include "datasets/dataset.h"
#include "datasets/decoding/image.h"
#include "tests/tools/evaluation/image_folder.h"
#include "tools/run_directory/run_files.h"

namespace duplex::tools::testing {
namespace {

std::vector<std::uint8_t> from_base64(const std::string& text) {
  static const std::string digits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::vector<std::uint8_t> bytes;
  std::uint32_t bits = 0;
  int count = 0;
  for (const char digit : text) {
    if (digit == '=') break;
    bits = bits << 6 | static_cast<std::uint32_t>(digits.find(digit));
    if ((count += 6) < 8) continue;
    count -= 8;
    bytes.push_back(static_cast<std::uint8_t>(bits >> count));
  }
  return bytes;
}

class EvaluationReport : public ImageFolder {
 protected:
  EvaluationReport() {
    write_images(classes_, 40);
    weights_ = train({"--batches", "4"}, 1);
    result_ = run({"evaluate", "--weights", weights_, "--datadir", data_.path(), "--threads", "1",
                   "--part", "all", "--logdir", folder_ / "run"});
  }

  std::string weights_;
  Result result_;
};

TEST_F(EvaluationReport, KeepsTheImagesThatItIsMostWrongAbout) {
  ASSERT_EQ(result_.exit, 0) << result_.err;
  EXPECT_NE(result_.out.find("run/evaluation.json; duplex report"), std::string::npos);
  const EvaluationFile evaluation = read_evaluation(folder_ / "run/evaluation.json");
  EXPECT_EQ(text_of(evaluation), read_text(folder_ / "run/evaluation.json"));
  ASSERT_EQ(evaluation.worst.size(), 24U);
  // With all classes asked for, classify says the same of each.
  datasets::DatasetOptions options;
  options.channels = 3;
  options.height = options.width = 16;
  const auto data = datasets::open_dataset(data_.path(), options);
  double before = 1e9;
  for (const WrongImage& image : evaluation.worst) {
    EXPECT_LE(image.loss, before);
    before = image.loss;
    EXPECT_NE(image.label, image.said);
    EXPECT_GE(image.probability, image.own);
    EXPECT_NEAR(image.loss, -std::log(image.own), 1e-9);
    ASSERT_TRUE(image.picture);
    const std::vector<std::uint8_t> png = from_base64(*image.picture);
    const datasets::Image shown = datasets::decode_image(png.data(), png.size(), 3);
    ASSERT_EQ(shown.size.width, 16);
    ASSERT_EQ(shown.size.height, 16);
    std::uint32_t sample = 0;
    while (data->sample(sample).name != image.name) ++sample;
    EXPECT_EQ(data->sample(sample).label, image.label);
    std::vector<std::uint8_t> scratch(data->sample_bytes());
    const std::uint8_t* planes = data->read(sample, scratch.data());
    for (std::size_t i = 0; i < 256; ++i)
      for (std::size_t c = 0; c < 3; ++c)
        ASSERT_EQ(shown.pixels.get()[3 * i + c], planes[256 * c + i]);
  }
}

TEST_F(EvaluationReport, IsASectionOfThePage) {
  ASSERT_EQ(run({"report", folder_ / "run"}).exit, 0);
  const std::string page = read_text(folder_ / "run/report.html");
  const EvaluationFile evaluation = read_evaluation(folder_ / "run/evaluation.json");
  EXPECT_NE(page.find("Evaluation of run"), std::string::npos);
  EXPECT_NE(page.find("<table class=\"matrix\">"), std::string::npos);
  EXPECT_NE(page.find("c &quot;horse&quot;"), std::string::npos);
  EXPECT_EQ(page.find("c \"horse\""), std::string::npos);
  std::size_t pictures = 0;
  for (std::size_t at = 0; (at = page.find(" src=\"", at)) != std::string::npos; ++at, ++pictures)
    EXPECT_EQ(page.compare(at, 28, " src=\"data:image/png;base64,"), 0);
  EXPECT_EQ(pictures, evaluation.worst.size());
  for (const ConfusionCell& cell : evaluation.confusion)
    EXPECT_NE(page.find(")\">" + std::to_string(cell.images) + "</td>"), std::string::npos);
}

TEST_F(EvaluationReport, RefusesADamagedFile) {
  const std::string path = folder_ / "run/evaluation.json";
  const nlohmann::json good = nlohmann::json::parse(read_text(path));
  const auto refuses = [&](const nlohmann::json::json_pointer& key, const nlohmann::json& value,
                           const std::string& because) {
    nlohmann::json bad = good;
    bad[key] = value;
    write_text(path, bad.dump());
    expect_one_line(run({"report", folder_ / "run"}), 1, {"evaluation.json", because});
  };
  using Key = nlohmann::json::json_pointer;
  refuses(Key("/confusion/0/class"), 4, "no class 4");
  refuses(Key("/confusion/0/said"), -1, "no class -1");
  refuses(Key("/worst/0/said"), 99, "no class 99");
  refuses(Key("/worst/0/png"), "\"><script>", "no base64");
  refuses(Key("/classes"), "none", "no list");
  refuses(Key("/version"), 2, "another version");
}

}  // namespace
}  // namespace duplex::tools::testing
