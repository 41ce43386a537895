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

/// A checkpoint whose files have been verified.
struct Checkpoint {
  using Metadata = std::map<std::string, std::string>;

  std::uint64_t steps = 0;    ///< Steps that were trained before it; asynchronous: its number.
  int ranks = 1;              ///< That wrote it.
  std::uint64_t samples = 0;  ///< That all workers had seen; 0: it does not say.
  /// This rank's file; of a checkpoint by another number of ranks, all files that are here, in the
  /// order of their ranks.
  std::vector<std::string> paths;
  bool rescued = false;  ///< It was written when the run had failed, not on all ranks perhaps.

  Metadata metadata;  ///< That of the file of the first path.

  const std::string& path() const { return paths.front(); }
};

class CheckpointFiles {
 public:
  /// `settings`: everything that the training must have in common with a checkpoint to go on from
  /// it, but the number of ranks, as text with ", " between the parts.
  CheckpointFiles(std::string run_directory, int rank, int ranks, std::string settings);

  std::string path(std::uint64_t steps) const;

  /// All checkpoints by as many ranks whose file of this rank is whole, and all by another number
  /// of ranks of which some file is, newest first. A file that is damaged is passed over, with a
  /// line on standard error. Throws Error if the newest whole one was made with other settings,
  /// naming both.
  std::vector<Checkpoint> whole() const;

  /// The whole files of other ranks, of as many, whose metadata has such a key; newest first.
  std::vector<Checkpoint> of_other_ranks(const std::string& key) const;

  using Metadata = Checkpoint::Metadata;
  /// Writes that of so many steps, whole or not at all, with `more` in its metadata; "samples" and
  /// "rescued": those of Checkpoint. Throws Error if it cannot be written.
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
  struct File {
    int rank = 0;
    std::string path;
  };
  std::vector<std::uint64_t> all_steps() const;
  std::vector<std::uint64_t> steps_there() const;
  std::vector<File> files(std::uint64_t steps) const;
  bool keeps(int rank) const;
  std::optional<Checkpoint> whole_at(std::uint64_t steps, bool newest) const;
  bool fits(const std::string& path, const std::string& settings, bool newest) const;
  void remove(std::uint64_t steps) const;
  std::string note() const;

  std::string run_directory_;
  int rank_, ranks_;
  std::string settings_;
};

}  // namespace duplex::tools
