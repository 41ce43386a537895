// Files of weights: what a training says of itself in them, and what using them takes from that.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "datasets/loader.h"
#include "tools/run_directory/weights_note.h"
#include "tools/setup/setup.h"

namespace duplex::tools {

/// The metadata of the weights of a training. `batch`: images that it computes at a time; `steps`:
/// how many have trained them; `settings`: all that the training was asked for.
std::map<std::string, std::string> weights_metadata(const TrainingSpec& spec,
                                                    const TrainingSetup& setup, std::int64_t batch,
                                                    const std::string& steps,
                                                    const std::string& settings);

/// The metadata of a file of weights.
struct WeightsFile {
  std::string path;
  std::string network, steps, settings;  ///< Each empty where it does not say.
  std::optional<WeightsNote> note;       ///< None: an older or another program has written it.

  /// The network that it is of: what the user has not asked for is as the file says. `asked` has
  /// the user's flags. Throws Error(Exit::usage) if neither says which network it is, or if they
  /// say different ones.
  ModelSpec model(const ModelSpec& asked) const;
  /// Its training had these; none where it does not say.
  std::optional<double> test_fraction() const;
  std::optional<std::int64_t> batch() const;
  /// The names of the classes; none where it does not say.
  std::vector<std::string> class_names() const;
  /// Tests in its training read images so; where it does not say, they are squashed and
  /// normalised as usual.
  datasets::LoaderOptions reading() const;
  /// Throws Error if it names classes and a data set has others, naming the first that differ.
  void require_classes_of(const datasets::Dataset& data) const;
};

/// Reads the file's metadata. Throws Error if it is no safetensors file, or the metadata are
/// damaged.
WeightsFile read_weights_file(const std::string& path);

}  // namespace duplex::tools
