// The files of one rank's checkpoints, in the run directory (docs/run-directory.md):
// checkpoints/step-0000000500/rank-0.safetensors.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/files/state_file.h"

namespace duplex::tools {

/// A checkpoint whose file has been verified.
struct Checkpoint {
  std::uint64_t steps = 0;  ///< Steps that were trained before it.
  std::string path;         ///< This rank's file.
  bool rescued = false;     ///< It was written when the run had failed, not on all ranks perhaps.
};

class CheckpointFiles {
 public:
  /// `settings`: everything that the training must have in common with a checkpoint to go on from
  /// it, as text with ", " between the parts.
  CheckpointFiles(std::string run_directory, int rank, std::string settings);

  std::string path(std::uint64_t steps) const;

  /// All checkpoints whose file of this rank is whole, newest first. One that is damaged is passed
  /// over, with a line on standard error. Throws Error if the newest whole one was made with other
  /// settings, naming both.
  std::vector<Checkpoint> whole() const;

  using Metadata = std::map<std::string, std::string>;
  /// Writes that of so many steps, whole or not at all, with `more` in its metadata; "rescued":
  /// Checkpoint::rescued. Throws Error if it cannot be written.
  void write(std::uint64_t steps, const std::vector<StateArray>& arrays,
             const Metadata& more = {}) const;
  /// Notes that a training begins, until its first checkpoint is whole. Where the note cannot be
  /// written, there is none.
  void note_begin() const;
  /// Returns whether a training has begun here that has never finished a checkpoint. Files that
  /// were lost, or left behind on another machine, leave no such note.
  bool has_only_begun() const;
  /// Removes this rank's older ones but the last two, and those of `useless` steps, which another
  /// rank could not write.
  void keep_newest(const std::set<std::uint64_t>& useless = {}) const;
  /// Removes those of more than so many steps, since the training goes on from there.
  void remove_after(std::uint64_t steps) const;

 private:
  std::vector<std::uint64_t> steps_there() const;
  void remove(std::uint64_t steps) const;
  std::string note() const;

  std::string run_directory_;
  int rank_;
  std::string settings_;
};

}  // namespace duplex::tools
