// A file of weights says how it was trained, so that the weights can be used without the run's
// directory: JSON, under "training" in the safetensors file's metadata.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace duplex::tools {

struct WeightsNote {
  std::string network, title;       ///< "resnet34", "Resnet34".
  std::string input;                ///< "1x3x224x224": one sample.
  std::int64_t classes = 0;         ///< The network's, of which some may have no name.
  std::vector<std::string> names;   ///< Those of the data set's classes, in their order.
  std::vector<float> mean, stddev;  ///< Pixels are normalised by them, by channel.
  bool auxiliary = false, pad_shortcuts = false;
  std::optional<std::string> network_file;  ///< Its text, where `network` is the path of a file.
  std::string data;                         ///< It names the data set for people, without its path.
  double test_fraction = 0.0;
  int test_side = 0;       ///< That is --test-crop; 0: images are squashed.
  std::int64_t batch = 0;  ///< Images that the training computed, and tested, at a time.
};

template <class Fields>
void describe(Fields& f, WeightsNote& n) {
  f.version();
  f.field("network", n.network);
  f.later("title", n.title);
  f.field("input", n.input);
  f.field("classes", n.classes);
  f.field("class_names", n.names);
  f.field("mean", n.mean);
  f.field("stddev", n.stddev);
  f.unless_zero("auxiliary", n.auxiliary);
  f.unless_zero("pad_shortcuts", n.pad_shortcuts);
  f.optional("network_file", n.network_file);
  f.later("data", n.data);
  f.field("test_fraction", n.test_fraction);
  f.unless_zero("test_crop", n.test_side);
  f.field("batch", n.batch);
}

}  // namespace duplex::tools
