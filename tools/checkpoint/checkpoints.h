// The checkpoints of a run, which a training goes on from: when they are due, and where they lie in
// the run directory (docs/run-directory.md).
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/files/state_file.h"
#include "tools/run_directory/troubles.h"

namespace duplex::tools {

/// The plan says when checkpoints are due, beside those that a signal asks for.
struct CheckpointPlan {
  std::uint64_t steps = 0;  ///< Every so many; 0: steps do not matter.
  double seconds = 0.0;     ///< So long after the last one; 0: time does not matter.

  bool any() const { return steps != 0 || seconds > 0.0; }
};

/// A checkpoint whose file has been verified.
struct Checkpoint {
  std::uint64_t steps = 0;  ///< Steps that were trained before it.
  std::string path;         ///< This rank's file.
};

/// The file of a rank in the checkpoint of so many steps.
std::string checkpoint_path(const std::string& run_directory, std::uint64_t steps, int rank);

/// The newest checkpoint whose file of this rank is whole; none: there is none. One that is damaged
/// is passed over, with a line on standard error. Throws Error if the newest whole one was made
/// with other `settings`, naming both.
std::optional<Checkpoint> newest_checkpoint(const std::string& run_directory, int rank,
                                            const std::string& settings);

/// Writes checkpoints of one rank while it trains.
class CheckpointWriter {
 public:
  /// `arrays` are all that a training consists of beside its settings and its step; `first`: steps
  /// that were trained before this program began.
  CheckpointWriter(std::string run_directory, int rank, CheckpointPlan plan, std::string settings,
                   std::uint64_t first, std::vector<StateArray> arrays, Troubles& troubles);

  /// Returns whether one is due, by the plan, after so many steps: with every so many, at the first
  /// question from there on.
  bool due(std::uint64_t steps) const;
  /// The training loop calls it at the end of each round. It writes a checkpoint if one is due or a
  /// signal asks for it, after calling `await_weights`. It returns false if a signal asks the
  /// training to end. Throws Error if the checkpoint before such an end cannot be written.
  bool after(std::uint64_t steps, const std::function<void()>& await_weights);
  /// Does what write() does, but reports an error to the troubles. Returns whether there was none.
  bool try_to_write(std::uint64_t steps);
  /// Writes the checkpoint at the end of the training, unless it was the last one tried.
  void finish(std::uint64_t steps) {
    if (steps > last_) try_to_write(steps);
  }
  /// Writes that of so many steps, whole or not at all; then removes this rank's older ones but the
  /// last. Throws Error if it cannot be written.
  void write(std::uint64_t steps);

 private:
  const std::string run_directory_;
  const int rank_;
  const CheckpointPlan plan_;
  const std::string settings_;
  const std::vector<StateArray> arrays_;
  Troubles& troubles_;
  std::uint64_t last_;    ///< Steps of the last that was tried, or of the beginning.
  std::int64_t written_;  ///< When that was, by clock_ns().
};

}  // namespace duplex::tools
