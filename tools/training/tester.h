// Tests a network during its training and after it.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "datasets/dataset.h"
#include "layers/exchange/moving_average.h"
#include "layers/network.h"
#include "tools/display/display.h"
#include "tools/plan/schedule.h"
#include "tools/run_directory/row_file.h"
#include "tools/run_directory/rows.h"
#include "tools/run_directory/run_directory.h"
#include "tools/run_directory/time_to_accuracy.h"
#include "tools/training/evaluation.h"

namespace duplex::tools {

/// Each test prints a line for the user and writes a row of accuracy.csv. All arguments must
/// outlive it.
class Tester {
 public:
  /// `after_batch` is called after every batch of a test, unless it is empty.
  /// `reading`: as evaluate() takes it. `display` shows how far a test is. Rows of tests after the
  /// `first` steps at most, which were trained before, are kept.
  Tester(Network& network, const datasets::Subset& test, const RunDirectory& directory,
         const Schedule& schedule, const datasets::LoaderOptions& reading, std::uint64_t first,
         Troubles& troubles, const Display& display, std::function<void()> after_batch = {});
  /// Has every later test call `take` with its row of accuracy.csv.
  void tell(std::function<void(const AccuracyRow&)> take) { told_ = std::move(take); }
  /// Has the average of the weights tested in their place. It must outlive this object.
  void average(const MovingAverage& average) { average_ = &average; }
  /// Whether a test of the steps that were trained before has reached the target.
  bool has_reached(const AccuracyTarget& target) const;
  /// Tests what so many steps have trained, unless the last test was of these.
  Accuracy test(std::uint64_t steps);
  /// The weights are others now, after as many steps.
  void forget() { last_.reset(); }
  /// Does the same between steps: throws Error if outputs are not finite. Returns whether the
  /// target is reached, if there is one.
  bool reaches(std::uint64_t steps, const std::optional<AccuracyTarget>& target);

 private:
  Network& network_;
  const datasets::Subset& test_;
  const RunDirectory& directory_;
  Schedule schedule_;
  datasets::LoaderOptions reading_;
  Troubles& troubles_;
  Display display_;
  std::function<void()> after_batch_;
  std::vector<AccuracyRow> before_;               ///< Tests of the steps that were trained before.
  std::function<void(const AccuracyRow&)> told_;  ///< May be empty.
  const MovingAverage* average_ = nullptr;
  std::optional<RowFile<AccuracyRow>> file_;                ///< Open from the first test on.
  std::optional<std::pair<std::uint64_t, Accuracy>> last_;  ///< The last test, and its steps.
};

}  // namespace duplex::tools
