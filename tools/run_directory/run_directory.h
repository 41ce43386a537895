// A run directory: config.json, metrics.csv and what else a run leaves behind
// (docs/run-directory.md).
#pragma once
#include <string>
#include <vector>

namespace duplex::tools {

/// A directory for a run that its user has not named, for all ranks of it: runs/COMMAND-NET-TIME,
/// with -2, -3, ... behind it where there is such a path here already. `create`: makes it, so that
/// nobody else gets it; throws Error where that fails.
std::string unused_run_path(const std::string& command, const std::string& net, bool create);

class RunDirectory {
 public:
  /// Creates `path` and its parents, and in it the empty files `claims`, which this process of a
  /// run will write: no other run gets what is in the directory. It locks them as long as it lives,
  /// so that empty ones of a program that was killed are taken over. `later`: more files that it
  /// will write, in a directory that it shares with other processes of its run. An empty path means
  /// runs/COMMAND-NET-TIME, or the first of that name with -2, -3, ... behind it that is free.
  /// Throws Error where that fails, and Error(Exit::usage) where `path` holds files of a run
  /// already, unless it `resumes`: then no program may run in the directory any more. A program
  /// that may have been there before, in a run that still goes on, `returns`: files of a run are in
  /// its way only if it calls require_unused().
  RunDirectory(std::string path, const std::string& command, const std::string& net,
               const std::vector<std::string>& claims, const std::vector<std::string>& later = {},
               bool resumes = false, bool returns = false);
  /// Gives those claims up to which nothing was written: the run never began. Unlocks the
  /// directory.
  ~RunDirectory();
  RunDirectory(const RunDirectory&) = delete;
  RunDirectory& operator=(const RunDirectory&) = delete;

  const std::string& path() const { return path_; }
  /// Call it where a program that `returns` belongs to a new run: throws what the constructor
  /// throws for any other, if files of a run were there.
  void require_unused() const;
  std::string file(const std::string& name) const { return path_ + "/" + name; }
  /// Writes a whole file, or none.
  void write(const std::string& name, const std::string& content) const;
  void remove(const std::string& name) const;  ///< Does nothing where there is no such file.
  /// Renames a file that holds something, "ledger-0.csv" to "ledger-0.1.csv", or .2, and so on.
  void set_aside(const std::string& name) const;

 private:
  struct Claim {
    std::string file;
    int descriptor;
  };
  /// Returns what of another run is in the way; empty if all claims are made. `used`: the directory
  /// may have files of a run already.
  std::string claim(const std::string& command, const std::vector<std::string>& claims,
                    const std::vector<std::string>& later, bool used);
  bool lock(int how);
  void give_up();

  std::string path_;
  const bool resumes_;
  std::string in_the_way_;
  int lock_ = -1;  ///< The directory's own; a file that is written anew loses its lock.
  std::vector<Claim> claims_;
};

}  // namespace duplex::tools
