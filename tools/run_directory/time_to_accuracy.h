// An accuracy that a training is to reach, and what it took to get there.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "net/ledger/traffic.h"
#include "tools/run_directory/rows.h"

namespace duplex::tools {

/// "top1:0.88": a part of the test images.
struct AccuracyTarget {
  bool top5 = false;  ///< Else top-1.
  double fraction = 0.0;

  bool reached_by(double top1, double top5_fraction) const {
    return (top5 ? top5_fraction : top1) >= fraction;
  }
  std::string str() const;
};

/// Throws Error(Exit::usage) for anything but "top1:F" and "top5:F", 0 < F <= 1.
AccuracyTarget parse_accuracy_target(const std::string& text);

/// This is what a training took until the first test that reached a target.
struct TimeToAccuracy {
  std::uint64_t steps = 0;
  /// Its first worker's steps took so long; tests count only where others train meanwhile. None: a
  /// step before the test is in no row.
  std::optional<double> seconds;
  /// That the first worker sent and received; none: a part of the run is in no file.
  std::optional<std::uint64_t> bytes;
};

/// The way in which workers train together decides what the rows of a training mean.
struct RowMeaning {
  bool asynchronous = false;  ///< Others train during tests.
  std::uint64_t average = 0;  ///< Batches between averagings, by which traffic is counted; 0: by
                              ///< steps.
};

/// Returns what the training took until each test. Rows may lie in any order, and some may be
/// missing. `traffic`: the first worker's; null: it talked to nobody.
std::vector<TimeToAccuracy> times_of_tests(const std::vector<AccuracyRow>& tests,
                                           const std::vector<StepMetrics>& metrics,
                                           const std::vector<net::StepTraffic>* traffic,
                                           const RowMeaning& meaning);

/// Returns what it took until the first test that reached a target; none: no test did.
std::optional<TimeToAccuracy> time_to_accuracy(const AccuracyTarget& target,
                                               const std::vector<AccuracyRow>& tests,
                                               const std::vector<StepMetrics>& metrics,
                                               const std::vector<net::StepTraffic>* traffic,
                                               const RowMeaning& meaning);

/// Returns what the run in a directory took to an accuracy, as far as its files tell; none: no test
/// of theirs did. `first_worker`: its rank; none: local's run. Throws Error
/// where a file is damaged.
std::optional<TimeToAccuracy> time_to_accuracy(const std::string& directory,
                                               const AccuracyTarget& target,
                                               std::optional<int> first_worker,
                                               const RowMeaning& meaning);

/// A line for the user: "reached  top1:0.88 after 1,200 steps, 35.2 s of training and 12.5 MB", or
/// that no test came to it.
std::string reached_report(const AccuracyTarget& target, const std::optional<TimeToAccuracy>& time);

}  // namespace duplex::tools
