// The setup of a training: the data set, the model that fits it, and lines about images that could
// not be used.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "datasets/dataset.h"
#include "datasets/loader.h"
#include "layers/model.h"
#include "tools/plan/schedule.h"
#include "tools/setup/training_spec.h"

namespace duplex::tools {

/// The data (none for a replay) and a model for it: the input size is the network's, unless asked
/// for, and the classes are the data set's, unless asked for.
struct TrainingSetup {
  std::shared_ptr<const datasets::Dataset> data;
  datasets::Split split;
  Model model;
};

/// Opens the data set and says what was skipped. Throws Error(Exit::usage) if data and network do
/// not fit, or if nothing is left for the tests that are asked for.
TrainingSetup open_training(const TrainingSpec& spec);

/// The training's part of config.json. `device` is null for a replay.
RunConfig config_of(const TrainingSpec& spec, const std::string& command,
                    const TrainingSetup& setup, const Device* device);

/// The steps of a training, those before a checkpoint included, each of which takes so many
/// samples.
std::uint64_t steps_of(const TrainingSpec& spec, const TrainingSetup& setup,
                       std::uint64_t step_samples);

/// Tells a rate that goes by the length of the run how many updates that has. Throws
/// Error(Exit::usage) if the warm-up leaves none of them.
void set_updates(LearningRate& rate, std::uint64_t updates);

/// Everything that a checkpoint of this training belongs to, as one line of text; `more`: what the
/// command adds. A training that goes on may be longer than it was to be, unless its learning rate
/// goes by the length (set_updates), but is the same otherwise.
std::string resumable_settings(const TrainingSpec& spec, const TrainingSetup& setup,
                               const std::string& more);

/// Number of threads that decode images beside the computing ones.
int loader_threads();
/// Says how the loader reads the training's batches; a rank's `share` of each.
datasets::LoaderOptions loader_options(const TrainingSpec& spec, const datasets::Share& share);
/// Says how tests read their images; evaluate() says which.
datasets::LoaderOptions test_options(const TrainingSpec& spec);

/// A schedule of the epochs or batches that are asked for, whichever end first.
Schedule schedule_of(const TrainingSpec& spec, const datasets::BatchLoader& loader);

/// Prints images that a test could not read, in a line or two on standard error.
void report_unreadable(const std::vector<datasets::LeftOut>& images);
/// Prints images that were replaced while reading, in a line or two on standard error. Only a run
/// that trains should call it: a loader reads ahead, for a run that then uses no batch of it, too.
void report_replaced(const std::vector<datasets::LeftOut>& replaced);

}  // namespace duplex::tools
