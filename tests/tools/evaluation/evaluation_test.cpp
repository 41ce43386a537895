// duplex evaluate and classify: they say of weights what the training has said of them, to the bit,
// and the figures of classes follow from what is said of each image.
#include <cmath>
#include <map>
#include <sstream>

#include "core/files/safetensors.h"
#include "datasets/dataset.h"
#include "datasets/decoding/image.h"
#include "layers/checkpoint.h"
#include "models/registry.h"
#include "tests/tools/evaluation/image_folder.h"
#include "tools/training/evaluation.h"

namespace duplex::tools::testing {
namespace {

using Json = nlohmann::json;
using Counts = std::vector<std::vector<std::uint64_t>>;

/// The test part, as a training with --test-fraction 0.3 has it.
datasets::Subset test_part(const std::string& data) {
  datasets::DatasetOptions options;
  options.channels = 3;
  options.height = options.width = 16;
  return datasets::split(datasets::open_dataset(data, options), 0.3).test;
}

/// The confusion matrix, counted from what classify says of each image by itself.
Counts counted(const Json& classified, const datasets::Subset& test, std::size_t classes) {
  Counts counts(classes, std::vector<std::uint64_t>(classes));
  for (std::size_t i = 0; i < test.size(); ++i) {
    const auto label = static_cast<std::size_t>(test.data->sample(test.samples[i]).label);
    ++counts[label][classified["images"][i]["guesses"][0]["class"].get<std::size_t>()];
  }
  return counts;
}

Counts matrix_of(const Json& evaluation) {
  const std::size_t classes = evaluation["classes"].size();
  Counts counts(classes, std::vector<std::uint64_t>(classes));
  for (const Json& cell : evaluation["confusion"])
    counts[cell["class"].get<std::size_t>()][cell["said"].get<std::size_t>()] +=
        cell["images"].get<std::uint64_t>();
  return counts;
}

class Evaluate : public ImageFolder {
 protected:
  Evaluate() { write_images(classes_, 30); }

  std::vector<std::string> paths(const datasets::Subset& part) const {
    std::vector<std::string> all;
    for (const std::uint32_t sample : part.samples)
      all.push_back(data_ / part.data->sample(sample).name);
    return all;
  }
};

TEST_F(Evaluate, AgreesWithLocalToTheBit) {
  const std::string weights = train();
  const Json local = Json::parse(read_text(folder_ / "run/summary.json"))["accuracy"];
  ASSERT_GT(local["top1"].get<double>(), 0.3);
  ASSERT_LT(local["top1"].get<double>(), 1.0);
  const Json evaluation = evaluated(weights);
  EXPECT_EQ(evaluation["accuracy"], local);
  EXPECT_EQ(evaluation["test_fraction"], 0.3);
  // A run that trains nothing tests the same weights.
  const Result again = run({"local", "--net", net_, "--datadir", data_.path(), "--weights", weights,
                            "--batches", "0", "--accuracy", "--batch", "8", "--threads", "1",
                            "--test-fraction", "0.3", "--logdir", folder_ / "again"});
  ASSERT_EQ(again.exit, 0) << again.err;
  EXPECT_EQ(Json::parse(read_text(folder_ / "again/summary.json"))["accuracy"], local);
}

/// The weights say how images are read, and that tests were of the averaged ones.
TEST_F(Evaluate, ReadsImagesAsTheTrainingsTestsDid) {
  const std::string weights =
      train({"--test-crop", "20", "--crop", "0.5:1", "--pixel-mean", "0.4,0.5,0.6",
             "--pixel-stddev", "0.3,0.3,0.2", "--ema", "0.9"});
  const Json local = Json::parse(read_text(folder_ / "run/summary.json"))["accuracy"];
  EXPECT_EQ(evaluated(folder_ / "run/ema.safetensors")["accuracy"], local);
  EXPECT_NE(evaluated(weights)["accuracy"]["loss"], local["loss"]);
  const datasets::Subset test = test_part(data_.path());
  const Json classified =
      json_of(plus({"classify", "--weights", folder_ / "run/ema.safetensors"}, paths(test)));
  EXPECT_EQ(matrix_of(evaluated(folder_ / "run/ema.safetensors")), counted(classified, test, 4));
  // A larger input has no middle of that size.
  const Result larger =
      run({"evaluate", "--weights", weights, "--datadir", data_.path(), "--input", "24"});
  EXPECT_EQ(larger.exit, 2);
  EXPECT_NE(larger.err.find("was tested with --test-crop 20, which is smaller"), std::string::npos)
      << larger.err;
}

TEST_F(Evaluate, CountsWhatClassifySaysOfEachImage) {
  const std::string weights = train();
  const Json evaluation = evaluated(weights);
  const datasets::Subset test = test_part(data_.path());
  ASSERT_EQ(test.size(), 4U * 9U);
  const Json classified =
      json_of(plus({"classify", "--weights", weights, "--top", "9"}, paths(test)));
  ASSERT_EQ(classified["images"].size(), test.size());

  const Counts counts = counted(classified, test, 4);
  EXPECT_EQ(matrix_of(evaluation), counts);
  double loss = 0.0;
  std::uint64_t right = 0;
  for (std::size_t i = 0; i < test.size(); ++i) {
    const auto label = static_cast<std::size_t>(test.data->sample(test.samples[i]).label);
    EXPECT_EQ(classified["images"][i]["image"], paths(test)[i]);
    double sum = 0.0, before = 1.0;
    for (const Json& guess : classified["images"][i]["guesses"]) {
      const double probability = guess["probability"];
      EXPECT_LE(probability, before);
      before = probability;
      sum += probability;
      EXPECT_EQ(guess["name"], classes_[guess["class"].get<std::size_t>()]);
      if (guess["class"] == label) loss -= std::log(probability);
    }
    EXPECT_EQ(classified["images"][i]["guesses"].size(), 4U);
    EXPECT_NEAR(sum, 1.0, 1e-12);
    right += classified["images"][i]["guesses"][0]["class"] == label ? 1U : 0U;
  }
  const auto images = static_cast<double>(test.size());
  EXPECT_EQ(evaluation["accuracy"]["top1"].get<double>(), static_cast<double>(right) / images);
  EXPECT_EQ(evaluation["accuracy"]["top5"], 1.0);
  EXPECT_NEAR(evaluation["accuracy"]["loss"].get<double>(), loss / images, 1e-12);

  for (std::size_t i = 0; i < 4; ++i) {
    std::uint64_t said = 0, own = 0;
    for (std::size_t j = 0; j < 4; ++j) said += counts[j][i], own += counts[i][j];
    const Json& figures = evaluation["classes"][i];
    EXPECT_EQ(figures["name"], classes_[i]);
    EXPECT_EQ(figures["images"], own);
    EXPECT_EQ(figures["said"], said);
    EXPECT_EQ(figures["right"], counts[i][i]);
    EXPECT_EQ(figures["recall"].get<double>(),
              static_cast<double>(counts[i][i]) / static_cast<double>(own));
    if (said == 0)
      EXPECT_TRUE(figures["precision"].is_null());
    else
      EXPECT_EQ(figures["precision"].get<double>(),
                static_cast<double>(counts[i][i]) / static_cast<double>(said));
  }
}

/// The probabilities are those of the network's own softmax, on the plain loops.
TEST_F(Evaluate, ProbabilitiesAreThoseOfTheNetwork) {
  const std::string weights = train();
  const datasets::Subset test = test_part(data_.path());
  const std::string path = paths(test)[5];
  const Json guesses = json_of({"classify", "--weights", weights, path})["images"][0]["guesses"];

  const auto device = make_device("reference", 1);
  models::ModelOptions options;
  options.file = read_text(net_);
  Network network(models::build(net_, options), *device, 1, false);
  load_checkpoint(weights, network);
  std::vector<std::uint8_t> scratch(test.data->sample_bytes());
  const std::uint8_t* pixels = test.data->read(test.samples[5], scratch.data());
  std::vector<float> image(test.data->sample_bytes());
  const double mean[] = {0.485, 0.456, 0.406}, stddev[] = {0.229, 0.224, 0.225};
  for (std::size_t i = 0; i < image.size(); ++i)
    image[i] = static_cast<float>((pixels[i] / 255.0 - mean[i / 256]) / stddev[i / 256]);
  ForwardContext context;
  context.training = false;
  network.forward(image.data(), context);
  std::vector<float> outputs(4);
  network.outputs(outputs.data());
  ASSERT_EQ(guesses.size(), 4U);
  for (const Json& guess : guesses)
    EXPECT_NEAR(guess["probability"].get<double>(),
                double{outputs[guess["class"].get<std::size_t>()]}, 1e-5);
}

/// They stay finite where exp of a logit is not; squared error's are the outputs themselves.
TEST(Probabilities, AreASoftmaxOrTheOutputs) {
  const std::vector<float> logits{1.5F, -2.0F, 0.25F, 3.0F};
  long double sum = 0.0L;
  for (const float logit : logits) sum += std::exp(static_cast<long double>(logit));
  const std::vector<double> soft =
      probabilities(LossKind::softmax_cross_entropy, logits.data(), logits.size());
  const std::vector<double> plain =
      probabilities(LossKind::squared_error, logits.data(), logits.size());
  ASSERT_EQ(soft.size(), logits.size());
  for (std::size_t i = 0; i < logits.size(); ++i) {
    EXPECT_NEAR(soft[i], static_cast<double>(std::exp(static_cast<long double>(logits[i])) / sum),
                1e-15);
    EXPECT_EQ(plain[i], double{logits[i]});
  }
  const std::vector<float> far{1000.0F, 0.0F, 1000.0F};
  EXPECT_EQ(probabilities(LossKind::softmax_cross_entropy, far.data(), 3),
            (std::vector<double>{0.5, 0.0, 0.5}));
}

TEST_F(Evaluate, TextHasTheMatrixWithin80Columns) {
  const std::string weights = train();
  const Counts counts = matrix_of(evaluated(weights));
  const Result result =
      run({"evaluate", "--weights", weights, "--datadir", data_.path(), "--threads", "1"});
  ASSERT_EQ(result.exit, 0) << result.err;
  for (const char* part : {"Small, 4 classes, after", "--test-fraction 0.3, as in training",
                           "top-5 100.00% of 36 test images", "recall", "precision"})
    EXPECT_NE(result.out.find(part), std::string::npos) << part << "\n" << result.out;
  std::istringstream lines(result.out);
  std::string line;
  while (std::getline(lines, line) && line.find("Rows are the classes") == std::string::npos) {
  }
  std::getline(lines, line);  // The numbers of the columns.
  for (std::size_t i = 0; i < 4; ++i) {
    std::getline(lines, line);
    EXPECT_EQ(line.rfind(std::to_string(i) + " " + classes_[i], 0), 0U) << line;
    std::istringstream cells(line.substr(2 + classes_[i].size()));
    for (std::size_t j = 0; j < 4; ++j) {
      std::string cell;
      cells >> cell;
      EXPECT_EQ(cell, counts[i][j] == 0 ? "." : std::to_string(counts[i][j])) << line;
    }
  }
  const Result table = run({"evaluate", "--weights", weights, "--datadir", data_.path(),
                            "--threads", "1", "--output", "csv"});
  EXPECT_EQ(table.out.rfind("class,name,images,said,right,precision,recall\n0,a cat,9,", 0), 0U)
      << table.out;
  EXPECT_NE(table.out.find("\n1,\"b,dog\",9,"), std::string::npos) << table.out;
  EXPECT_NE(table.out.find("\n2,\"c \"\"horse\"\"\",9,"), std::string::npos) << table.out;
}

TEST_F(Evaluate, TakesTheOtherPartsToo) {
  const std::string weights = train();
  EXPECT_EQ(evaluated(weights, {"--part", "train"})["accuracy"]["samples"], 84);
  const Json all = evaluated(weights, {"--part", "all"});
  EXPECT_EQ(all["accuracy"]["samples"], 120);
  const Counts test = matrix_of(evaluated(weights)),
               train = matrix_of(evaluated(weights, {"--part", "train"}));
  Counts sum = test;
  for (std::size_t i = 0; i < 4; ++i)
    for (std::size_t j = 0; j < 4; ++j) sum[i][j] += train[i][j];
  EXPECT_EQ(matrix_of(all), sum);
  const Result other = run({"evaluate", "--weights", weights, "--datadir", data_.path(),
                            "--threads", "1", "--test-fraction", "0.5"});
  EXPECT_NE(other.out.find("training had 0.3"), std::string::npos) << other.out;
}

/// Many classes have no matrix: the pairs stand for it.
TEST_F(ImageFolder, ManyClassesHaveTheirPairs) {
  std::vector<std::string> classes;
  for (int i = 0; i < 30; ++i)
    classes.push_back("class " + std::to_string(100 + i) + " with a name that is rather long");
  write_images(classes, 5);
  const std::string weights = train({}, 1);
  const Result result =
      run({"evaluate", "--weights", weights, "--datadir", data_.path(), "--threads", "1"});
  ASSERT_EQ(result.exit, 0) << result.err;
  const std::size_t head = result.out.find("is taken for");
  ASSERT_NE(head, std::string::npos) << result.out;
  std::istringstream lines(result.out);
  for (std::string line; std::getline(lines, line);) {
    const bool has_path =
        line.find(data_.path()) != std::string::npos || line.find(weights) != std::string::npos;
    EXPECT_TRUE(has_path || line.size() <= 80U) << line;
  }
  std::istringstream rows(result.out.substr(result.out.find('\n', head) + 1));
  std::string row;
  std::getline(rows, row);  // The rule.
  int before = 1000, pairs = 0;
  while (std::getline(rows, row) && row.rfind("class", 0) == 0) {
    const int images = std::stoi(row.substr(58, 6));
    EXPECT_LE(images, before) << row;
    before = images;
    ++pairs;
  }
  EXPECT_EQ(pairs, 20);
  EXPECT_NE(result.out.find("lowest recall"), std::string::npos);
}

/// An older file has settings, and no note: the network, the split and the batch follow from them.
TEST_F(Evaluate, KnowsOlderFilesBySettings) {
  const std::string weights = train();
  const SafetensorsFile file(weights);
  std::map<std::string, std::string> metadata = file.metadata();
  ASSERT_EQ(metadata.count("training"), 1U);
  metadata.erase("training");
  const std::string old = folder_ / "old.safetensors";
  save_safetensors(old, file.entries(), metadata,
                   [&](std::size_t i, float* values) { file.read(file.entries()[i], values); });
  Json now = evaluated(weights), before = evaluated(old);
  EXPECT_EQ(before["batch"], 8);
  EXPECT_EQ(before["test_fraction"], 0.3);
  now.erase("weights"), before.erase("weights");
  EXPECT_EQ(now, before);

  const std::string image = data_ / "a cat/0.png";
  const Json numbered = json_of({"classify", "--weights", old, image}),
             named = json_of({"classify", "--weights", old, "--datadir", data_.path(), image});
  for (const Json& guess : numbered["images"][0]["guesses"])
    EXPECT_EQ(guess["name"], std::to_string(guess["class"].get<int>()));
  EXPECT_EQ(named, json_of({"classify", "--weights", weights, image}));
  metadata.erase("network");
  save_safetensors(old, file.entries(), metadata,
                   [&](std::size_t i, float* values) { file.read(file.entries()[i], values); });
  expect_one_line(run({"classify", "--weights", old, image}), 2, {"old.safetensors", "--net"});
  EXPECT_EQ(run({"classify", "--weights", old, "--net", net_, image}).exit, 0);
}

/// The weights that ranks have trained together, and checkpoints while one trains, say the same.
TEST_F(Evaluate, KnowsTheWeightsOfRanksAndCheckpoints) {
  train({"--checkpoint-every", "10", "--save", folder_ / "saved.safetensors"});
  const std::string image = data_ / "b,dog/3.png";
  const Json saved = json_of({"classify", "--weights", folder_ / "saved.safetensors", image});
  EXPECT_EQ(saved["images"][0]["guesses"].size(), 4U);
  EXPECT_EQ(json_of({"classify", "--weights",
                     folder_ / "run/checkpoints/step-0000000021/rank-0.safetensors", image}),
            saved);
  const Result launched =
      run({"launch", "--local", "2", "--", "--net", net_, "--datadir", data_.path(), "--batch", "4",
           "--batches", "3", "--threads", "1", "--test-fraction", "0.3", "--accuracy", "--logdir",
           folder_ / "together"});
  ASSERT_EQ(launched.exit, 0) << launched.err;
  const Json evaluation = evaluated(folder_ / "together/checkpoint.safetensors");
  EXPECT_EQ(evaluation["accuracy"],
            Json::parse(read_text(folder_ / "together/summary.json"))["accuracy"]);
  EXPECT_EQ(evaluation["batch"], 4);
}

}  // namespace
}  // namespace duplex::tools::testing
