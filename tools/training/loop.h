// The training loop is the same for a machine alone and for a rank among others, for a network and
// for a replay.
#pragma once
#include <cstdint>
#include <functional>
#include <limits>
#include <string>

#include "core/exchange.h"
#include "core/optimiser.h"
#include "tools/display/display.h"
#include "tools/plan/schedule.h"
#include "tools/training/computation.h"
#include "tools/training/metrics.h"

namespace duplex::tools {

struct LoopSpec {
  Schedule schedule;
  std::uint64_t first = 0;  ///< Steps that were trained before, up to a checkpoint.
  /// The step before which the loop ends, if that comes before the end of the schedule.
  std::uint64_t end = std::numeric_limits<std::uint64_t>::max();
  LearningRate rate;         ///< The rate that metrics.csv tells; the exchange applies it.
  std::int64_t batch = 1;    ///< Samples a step, for the rate that is shown.
  std::string metrics_path;  ///< File with a row for each step; empty: none.
  Display display = Display::quiet();  ///< The place where progress is shown.
  /// Called after every step with its row of metrics.csv. May be empty.
  std::function<void(const StepMetrics& row)> after_step;
  /// Called as a step begins. May be empty.
  std::function<void(std::uint64_t step)> beginning;
  /// Called to test what so many steps have trained, as often as the schedule says, but not after
  /// the last step. Its time counts to no step. Returns false to end the training here. May be
  /// empty.
  std::function<bool(std::uint64_t steps)> test;
  /// Called at the end of each round of the schedule, where weights include every sample seen. May
  /// write a checkpoint, once it has called `await_weights`; its time counts to no step. Returns
  /// false to end the training here. May be empty.
  std::function<bool(std::uint64_t steps, const std::function<void()>& await_weights)> checkpoint;
};

/// Runs all steps from `first` on. Throws Error if the loss is no longer finite.
/// `troubles` is told of metrics that cannot be written.
TrainingResult train(Computation& computation, Exchange& inner, const LoopSpec& spec,
                     Troubles& troubles);

}  // namespace duplex::tools
