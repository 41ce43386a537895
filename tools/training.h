// What local and dist have in common: the data set and the model that fits it, the training loop,
// and what a run leaves behind.
#pragma once
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "core/exchange.h"
#include "datasets/dataset.h"
#include "datasets/loader.h"
#include "layers/network.h"
#include "tools/evaluation.h"
#include "tools/run_directory.h"
#include "tools/statistics.h"
#include "tools/training_flags.h"

namespace duplex::tools {

/// The data (none for replay) and a model for it: input size by the network (or --input), classes
/// by the data set (or
/// --classes).
struct Task {
  std::shared_ptr<const datasets::Dataset> data;
  datasets::Split split;
  Model model;
};

/// Opens the data set, unless --device replays, and says what it is, with what was skipped. Throws
/// Error(Exit::usage) where they do not fit.
Task open_task(const TrainingFlags& flags);

/// Threads that decode pictures beside the computing ones.
int loader_threads();

/// Steps of a run: epochs of the loader's, or fewer if --batches says so. An epoch is over when as
/// many samples have been seen as the training part has, in the middle of a step as a rule.
struct Length {
  std::uint64_t steps = 0;
  std::uint64_t step_samples = 1;      ///< What all workers together take in a step.
  std::uint64_t epoch_samples = 1;     ///< The size of the training part.
  std::uint64_t steps_per_update = 1;  ///< Learning rates go by updates.
  /// The weights include every sample seen only after a multiple of so many steps, where gradients
  /// are accumulated, or workers' weights averaged.
  std::uint64_t steps_per_round = 1;

  /// That so many steps are, with fractions.
  double epochs(std::uint64_t steps) const;
  /// The epoch, from 0, that a step's first sample is of.
  std::uint64_t epoch_of(std::uint64_t step) const { return step * step_samples / epoch_samples; }
  /// Whether a test is due after so many steps: at the first end of a round behind the end of each
  /// `every`-th epoch. Never if `every` is 0.
  bool test_due(std::uint64_t steps, std::uint64_t every) const;
};
Length length_of(const TrainingFlags& flags, const datasets::BatchLoader& loader);

/// Medians over the steps after warm-up, and the run as a whole.
struct TrainingResult {
  Spread gradient, total, await, push, data;  ///< Seconds a step.
  double data_share = 0.0;       ///< Of the time of these steps, what went into waiting for data,
  std::uint64_t data_steps = 0;  ///< and how many waited for more than a hundredth of their time.
  bool update_apart = true;      ///< push is the update; else it is part of gradient.
  std::uint64_t steps = 0;
  std::optional<double> loss;  ///< Mean over the last tenth of the steps.
  double seconds = 0.0;        ///< All steps, without the tests between them.
};

/// Steps at the start that no figure counts: a tenth of the run, ten at most.
std::uint64_t warm_up_steps(std::uint64_t steps);

/// What a step did: its loss, if anything was computed, and when (clock_ns) it had its batch. Where
/// the device computes while the host goes on: how long it had nothing to do for lack of input or
/// of weights, which the host cannot see.
struct StepOutcome {
  std::optional<double> loss;
  std::int64_t have_data = 0;
  std::optional<CopyWaits> waits;
};
/// One step, all of it, through the exchange.
using StepRunner = std::function<StepOutcome(std::uint64_t step, Exchange& exchange)>;

/// Tests what so many steps have trained.
using TestRunner = std::function<void(std::uint64_t steps)>;

/// The training loop. A row a step goes to metrics.csv in `directory`, if given; progress is shown
/// if `show`, by pictures a second where a step takes `batch`. `test`, if given, runs as often as
/// --test-every says, but not after the last step; it counts to no step's time. Throws Error where
/// the loss is no longer finite.
TrainingResult train(const StepRunner& run, std::int64_t batch, Exchange& inner,
                     const TrainingFlags& flags, const Length& length,
                     const RunDirectory* directory, bool show, const TestRunner& test = nullptr);

/// Pieces of config.json and summary.json.
nlohmann::ordered_json config_of(const TrainingFlags& flags, const Task& task,
                                 const Device* device);
nlohmann::ordered_json json_of(const Spread& spread);
nlohmann::ordered_json json_of(const TrainingResult& result);
nlohmann::ordered_json json_of(const Accuracy& accuracy);

/// Lines for the user: t_grad and where the rest of a step went.
std::string report_of(const TrainingResult& result, std::int64_t batch, bool alone);

/// A line: how long, and in how many steps, computing waited for data.
std::string data_report_of(const TrainingResult& result);

/// What a test could not read, in a line or two on standard error.
void report_unreadable(const Accuracy& accuracy);

/// What was replaced while reading, in a line or two on standard error.
void report_replaced(const datasets::BatchLoader& loader);

}  // namespace duplex::tools
