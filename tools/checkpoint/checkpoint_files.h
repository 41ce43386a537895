// The files of one rank's checkpoints, in the run directory (docs/run-directory.md):
// checkpoints/step-0000000500/rank-0.safetensors, and the copies that it keeps of other ranks'
// parts, rank-2-copy.safetensors.
#pragma once
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/files/state_file.h"

namespace duplex::tools {

/// A file that has been verified.
struct CheckpointFile {
  int rank = 0;       ///< Whose part of the training it has.
  bool copy = false;  ///< Another rank wrote it.
  /// It lacks what is no piece of the weights, such as running statistics: a copy that was made
  /// when the run had failed.
  bool partial = false;
  std::string path;
};

/// A checkpoint of which files are here.
struct Checkpoint {
  using Metadata = std::map<std::string, std::string>;

  std::uint64_t steps = 0;    ///< Steps that were trained before it; asynchronous: its number.
  int ranks = 1;              ///< That wrote it.
  std::uint64_t samples = 0;  ///< That all workers had seen; 0: it does not say.
  /// This rank's own first, where it counts (CheckpointFiles::whole), then in the order of their
  /// ranks, copies behind what they are of.
  std::vector<CheckpointFile> files;
  bool rescued = false;  ///< It was written when the run had failed, not on all ranks perhaps.

  Metadata metadata;  ///< That of the first file.
  bool own = false;   ///< The first file is this rank's own, by as many ranks as there are.

  const std::string& path() const { return files.front().path; }
};

class CheckpointFiles {
 public:
  /// Which files are this rank's to remove: those that it writes itself, and those of ranks that
  /// are no more; or all, where every rank knows which checkpoints all have.
  enum class Removes { own, all };

  /// `settings`: everything that the training must have in common with a checkpoint to go on from
  /// it, but the number of ranks, as text with ", " between the parts. `kept`: the ranks of whose
  /// parts it writes copies.
  CheckpointFiles(std::string run_directory, int rank, int ranks, std::string settings,
                  std::vector<int> kept = {}, Removes removes = Removes::own);

  /// Where a rank's part lies, or its copy; this rank's own.
  std::string path(std::uint64_t steps, int rank, bool copy) const;
  std::string path(std::uint64_t steps) const { return path(steps, rank_, false); }

  /// All checkpoints of which some file is here that may be of use, newest first. Where this rank's
  /// own is whole, it counts, and besides it only copies of parts that are not here themselves: in
  /// a folder that all ranks share, the others have their own. A file that is damaged is passed
  /// over, with a line on standard error. Throws Error if the newest whole one was made with other
  /// settings, naming both.
  std::vector<Checkpoint> whole() const;
  /// The same of a file that has just come from another rank. Throws Error if it is damaged, or not
  /// of this training.
  CheckpointFile received(std::uint64_t steps, int rank) const;

  /// The same of one that lies there under whatever number the other rank gave it.
  Checkpoint received_from(const std::string& path, int rank) const;

  /// The whole files of other ranks, of as many, whose metadata has such a key; newest first.
  std::vector<Checkpoint> of_other_ranks(const std::string& key) const;

  using Metadata = Checkpoint::Metadata;
  /// Writes that of so many steps, whole or not at all, with `more` in its metadata; "samples" and
  /// "rescued": those of Checkpoint. The rows that lie in the run directory are on the disk before
  /// it is. Throws Error if it, or one of these, cannot be written.
  void write(std::uint64_t steps, const std::vector<StateArray>& arrays,
             const Metadata& more = {}) const;
  /// Returns when the rows of metrics and tests are on the disk. Throws Error if that fails.
  void sync_rows() const;
  /// Writes a copy of a rank's part as write() does, whatever becomes of rows here.
  void write_copy(std::uint64_t steps, int rank, const std::vector<StateArray>& arrays,
                  const Metadata& more = {}) const;
  /// Returns whether there are files of this rank's, of use or not.
  bool any() const;
  /// Notes that a training begins, until its first checkpoint is whole. Where the note cannot be
  /// written, there is none.
  void note_begin() const;
  /// Returns whether a training has begun here that has never finished a checkpoint. Files that
  /// were lost, or left behind on another machine, leave no such note.
  bool has_only_begun() const;
  /// Removes what is older than the last two that this rank has written, whoever wrote it, and the
  /// checkpoints of `useless` steps, which another rank could not write. Call it when all ranks
  /// have newer ones.
  void keep_newest(const std::set<std::uint64_t>& useless = {}) const;
  /// Removes those of more than so many steps, since the training goes on from there.
  void remove_after(std::uint64_t steps) const;

 private:
  struct File {
    int rank = 0;
    bool copy = false;
    std::string path;
  };
  std::vector<std::uint64_t> all_steps() const;
  static std::optional<File> file_at(const std::filesystem::path& path, bool parts);
  std::vector<File> files(std::uint64_t steps) const;
  bool writes(const File& file) const;
  bool removes(const File& file) const;
  bool has_written(std::uint64_t steps) const;
  Checkpoint checkpoint_in(const std::string& path, int rank, Metadata metadata) const;
  std::optional<Checkpoint> whole_at(std::uint64_t steps, bool newest) const;
  bool fits(const std::string& path, const std::string& settings, bool newest) const;
  void write_file(const std::string& file, std::uint64_t steps,
                  const std::vector<StateArray>& arrays, const Metadata& more) const;
  void remove(std::uint64_t steps) const;
  std::string note() const;

  std::string run_directory_;
  int rank_, ranks_;
  std::string settings_;
  std::vector<int> kept_;
  Removes removes_;
};

}  // namespace duplex::tools
