// Says when checkpoints of a training are due, and keeps the checkpoints of a training on one
// machine.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/files/state_file.h"
#include "tools/checkpoint/checkpoint_files.h"
#include "tools/run_directory/troubles.h"

namespace duplex::tools {

/// The plan says when checkpoints are due, beside those that a signal asks for.
struct CheckpointPlan {
  std::uint64_t steps = 0;  ///< Every so many; 0: steps do not matter.
  double seconds = 0.0;     ///< So long after the last one; 0: time does not matter.

  bool any() const { return steps != 0 || seconds > 0.0; }
};

/// Follows a plan through a training that begins after `first` steps.
class CheckpointClock {
 public:
  CheckpointClock(CheckpointPlan plan, std::uint64_t first);

  /// Returns whether one is due after so many steps: with every so many, at the first question from
  /// there on.
  bool due(std::uint64_t steps) const;
  /// One of so many steps is made now, or tried.
  void made(std::uint64_t steps);
  /// Steps of the last one that was made, or of the beginning.
  std::uint64_t last() const { return last_; }

 private:
  CheckpointPlan plan_;
  std::uint64_t last_;
  std::int64_t made_;  ///< When that was, by clock_ns().
};

/// Writes checkpoints while a machine trains alone.
class CheckpointWriter {
 public:
  /// `arrays` are all that a training consists of beside its settings and its step; `first`: steps
  /// that were trained before this program began; `more`: metadata of each beside its own.
  CheckpointWriter(CheckpointFiles files, CheckpointPlan plan, std::uint64_t first,
                   std::vector<StateArray> arrays, Troubles& troubles,
                   CheckpointFiles::Metadata more = {});

  /// The training loop calls it at the end of each round. It writes a checkpoint if one is due or a
  /// signal asks for it, after calling `await_weights`. It returns false if a signal asks the
  /// training to end. Throws Error if the checkpoint before such an end cannot be written.
  bool after(std::uint64_t steps, const std::function<void()>& await_weights);
  /// Writes the checkpoint at the end of the training, unless it was the last one tried.
  void finish(std::uint64_t steps) {
    if (steps > clock_.last()) try_to_write(steps);
  }

 private:
  /// Does what write() does, but reports an error to the troubles. Returns whether there was none.
  bool try_to_write(std::uint64_t steps);
  void write(std::uint64_t steps);

  const CheckpointFiles files_;
  CheckpointClock clock_;
  const std::vector<StateArray> arrays_;
  const CheckpointFiles::Metadata more_;
  Troubles& troubles_;
};

}  // namespace duplex::tools
