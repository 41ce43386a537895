// The setup of a training: the data set, the model that fits it, and lines about images that could
// not be used.
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
  /// Returns how to read images for a network that wants samples of this shape.
  std::function<datasets::DatasetOptions(const Shape& sample)> dataset_options;
};

/// The data (none for a replay) and a model for it: the input size is the network's, unless asked
/// for, and the classes are the data set's, unless asked for.
struct TrainingSetup {
  std::shared_ptr<const datasets::Dataset> data;
  datasets::Split split;
  Model model;
};

/// Opens the data set and says what was skipped. Throws Error(Exit::usage) if data and network do
/// not fit.
TrainingSetup open_training(const SetupSpec& spec);

/// Number of threads that decode images beside the computing ones.
int loader_threads();

/// A schedule of `epochs` of the loader's or `batches` steps, whichever ends first; none and 0: not
/// given. Tests are due every `test_every` epochs.
Schedule schedule_of(const datasets::BatchLoader& loader, std::optional<std::uint64_t> epochs,
                     std::uint64_t batches, std::uint64_t test_every);

/// Prints images that a test could not read, in a line or two on standard error.
void report_unreadable(const Accuracy& accuracy);

/// Prints images that were replaced while reading, in a line or two on standard error.
void report_replaced(const datasets::BatchLoader& loader);

}  // namespace duplex::tools
