// The metrics of a training: a row of metrics.csv for each step, and medians at the end.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/optimiser.h"
#include "layers/exchange/timed_exchange.h"
#include "layers/model.h"
#include "tools/plan/schedule.h"
#include "tools/run_directory/row_file.h"
#include "tools/run_directory/rows.h"
#include "tools/run_directory/run_summary.h"
#include "tools/text/sampled_values.h"
#include "tools/training/computation.h"

namespace duplex::tools {

/// The times of a step, by clock_ns(), and how long the exchange took of it.
struct StepClock {
  std::int64_t begin = 0, end = 0;
  ExchangeTimes exchange;
};

/// The losses of a training whose end is not known before, in bounded memory: sums over stretches
/// of steps, whose length doubles when there are too many.
class LastLosses {
 public:
  void add(double loss);
  /// Returns the mean of the last tenth, to the length of a stretch; none: there are no losses.
  std::optional<double> mean() const;

 private:
  struct Stretch {
    double sum = 0.0;
    std::uint64_t count = 0;
  };
  static constexpr std::size_t most = 256;
  std::vector<Stretch> stretches_;
  std::uint64_t length_ = 1, count_ = 0;
};

class Metrics {
 public:
  /// `path`: file with a row for each step; empty: none. The rows of the `first` steps, which were
  /// trained before, are kept and counted, and those behind them go. Throws Error if it cannot be
  /// read or opened; `troubles` is told of a row that cannot be written.
  Metrics(const Schedule& schedule, const LearningRate& rate, const std::string& path,
          std::uint64_t first, Troubles& troubles);

  /// Returns the row.
  StepMetrics add(std::uint64_t step, const StepClock& clock, const StepOutcome& outcome);
  /// The result of all steps that were added. `seconds`: see TrainingResult; those of the steps
  /// that were trained before are added to it.
  TrainingResult result(double seconds) const;

 private:
  bool count(const StepMetrics& row);
  const Schedule schedule_;
  const LearningRate rate_;
  const std::uint64_t tail_;  ///< Steps at the end whose loss is the run's.
  std::optional<RowFile<StepMetrics>> file_;
  /// Seconds of the steps that count.
  SampledValues gradient_, total_, await_, push_, data_;
  SampledValues own_gradient_;            ///< Without those that were trained before.
  double sum_ = 0.0, sum_of_data_ = 0.0;  ///< Seconds of these steps, and of waiting for data.
  std::uint64_t data_steps_ = 0;          ///< See TrainingResult.
  double loss_ = 0.0;  ///< Sum over the last tenth, if the schedule comes to its end.
  /// The steps that loss_ is of: fewer where this program has not trained all of the last tenth.
  std::uint64_t losses_ = 0;
  LastLosses last_losses_;
  std::uint64_t steps_ = 0;      ///< Steps that were trained, before and now.
  std::uint64_t untimed_ = 0;    ///< Those of them whose seconds are not known.
  double seconds_before_ = 0.0;  ///< Seconds of those that were trained before.
  bool update_apart_ = true;
};

/// Lines for the user: t_grad, and how the rest of a step was spent.
std::string report_of(const TrainingResult& result, std::int64_t batch, bool alone);

/// A line for the user if the loss at the end is still no less than that of guessing (the logarithm
/// of the number of classes, weighted over all losses of `model`); empty if it is, or the run was
/// too short to tell.
std::string learning_report_of(const TrainingResult& result, const Model& model);

/// A line for the user: how long, and in how many steps, computing waited for data.
std::string data_report_of(const TrainingResult& result);

}  // namespace duplex::tools
