// What a training starts from: the data set and the model that fits it, and what is told of images
// that could not be used.
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "datasets/dataset.h"
#include "datasets/loader.h"
#include "layers/model.h"
#include "models/registry.h"
#include "tools/training/evaluation.h"
#include "tools/training/schedule.h"

namespace duplex::tools {

struct SetupSpec {
  std::string net;
  models::ModelOptions model;
  std::string datadir;  ///< Empty: no data, as for a replay.
  double test_fraction = 0.2;
  bool tests = false;  ///< Whether there must be something to test with.
  /// How to read images for a network that wants samples of this shape.
  std::function<datasets::DatasetOptions(const Shape& sample)> dataset_options;
};

/// The data (none for replay) and a model for it: input size by the network, unless asked for, and
/// classes by the data set, unless asked for.
struct TrainingSetup {
  std::shared_ptr<const datasets::Dataset> data;
  datasets::Split split;
  Model model;
};

/// Opens the data set and says what was skipped. Throws Error(Exit::usage) where data and network
/// do not fit.
TrainingSetup open_training(const SetupSpec& spec);

/// Threads that decode images beside the computing ones.
int loader_threads();

/// `epochs` of the loader's or `batches` steps, whichever ends first; none and 0: not given. It
/// tests every `test_every` epochs.
Schedule schedule_of(const datasets::BatchLoader& loader, std::optional<std::uint64_t> epochs,
                     std::uint64_t batches, std::uint64_t test_every);

/// What a test could not read, in a line or two on standard error.
void report_unreadable(const Accuracy& accuracy);

/// What was replaced while reading, in a line or two on standard error.
void report_replaced(const datasets::BatchLoader& loader);

}  // namespace duplex::tools
