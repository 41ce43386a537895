// evaluation.json: how trained weights do on the classes of a data set, as evaluate has found.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tools/run_directory/run_summary.h"

namespace duplex::tools {

/// The figures of one class. Images whose outputs are not finite count to
/// `images` alone.
struct ClassResult {
  std::string name;
  std::uint64_t images = 0;         ///< Images of this class.
  std::uint64_t said = 0;           ///< The network says this class of so many.
  std::uint64_t right = 0;          ///< Both.
  std::optional<double> precision;  ///< right / said; none where nothing was said to be of it.
  std::optional<double> recall;     ///< right / images; none where the data set has none.
};

/// A cell of the confusion matrix that is not zero.
struct ConfusionCell {
  std::int64_t label = 0, said = 0;  ///< Classes, from 0: the true one, and the likeliest.
  std::uint64_t images = 0;
};

/// An image that the network is wrong about.
struct WrongImage {
  std::string name;
  std::int64_t label = 0, said = 0;
  double probability = 0.0, own = 0.0;  ///< They are the said class's and its own.
  double loss = 0.0;
  std::optional<std::string> picture;  ///< It is a PNG as base64, as the network saw the image.
};

struct EvaluationFile {
  std::string network, title;
  std::string weights, steps;  ///< Their file, and how many steps have trained them, as it says.
  std::string data, part;      ///< The data set for people, and "test", "train" or "all" of it.
  std::string device;
  double test_fraction = 0.0;
  std::int64_t batch = 0;
  AccuracySummary accuracy;
  std::vector<ClassResult> classes;
  std::vector<ConfusionCell> confusion;  ///< By class, then by what was said.
  std::vector<WrongImage> worst;         ///< Those of the greatest losses, in their order.
};

/// The cells in which a class was taken for another, those of most images first, `most` of them.
std::vector<ConfusionCell> most_confused(const EvaluationFile& evaluation, std::size_t most);
/// The numbers of the classes that have images, those of the lowest recall first, `most` of them.
std::vector<std::size_t> lowest_recall(const EvaluationFile& evaluation, std::size_t most);
/// "300 test images", "1 training image", "1,200 images": those that were evaluated.
std::string images_text(const EvaluationFile& evaluation);

template <class Fields>
void describe(Fields& f, ClassResult& c) {
  f.field("name", c.name);
  f.field("images", c.images);
  f.field("said", c.said);
  f.field("right", c.right);
  f.nullable("precision", c.precision);
  f.nullable("recall", c.recall);
}

template <class Fields>
void describe(Fields& f, ConfusionCell& c) {
  f.field("class", c.label);
  f.field("said", c.said);
  f.field("images", c.images);
}

template <class Fields>
void describe(Fields& f, WrongImage& i) {
  f.field("image", i.name);
  f.field("class", i.label);
  f.field("said", i.said);
  f.field("probability", i.probability);
  f.field("class_probability", i.own);
  f.field("loss", i.loss);
  f.optional("png", i.picture);
}

template <class Fields>
void describe(Fields& f, EvaluationFile& e) {
  f.version();
  f.field("network", e.network);
  f.field("title", e.title);
  f.field("weights", e.weights);
  f.field("steps", e.steps);
  f.field("data", e.data);
  f.field("part", e.part);
  f.field("test_fraction", e.test_fraction);
  f.field("batch", e.batch);
  f.field("device", e.device);
  f.field("accuracy", e.accuracy);
  f.field("classes", e.classes);
  f.field("confusion", e.confusion);
  f.field("worst", e.worst);
}

}  // namespace duplex::tools
