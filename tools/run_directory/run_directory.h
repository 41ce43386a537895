// A run directory: config.json, metrics.csv and what else a run leaves behind
// (docs/run-directory.md).
#pragma once
#include <string>

namespace duplex::tools {

/// A name for a run that its user has not named, for all ranks of it: runs/COMMAND-NET-TIME, with
/// -2, -3, ... behind it where there is such a path here already. Creates nothing.
std::string unused_run_path(const std::string& command, const std::string& net);

class RunDirectory {
 public:
  /// Creates `path` and its parents, and in it the empty file `claim`, which this process of a run
  /// will write: no other run gets what is in the directory. An empty path means
  /// runs/COMMAND-NET-TIME, or the first of that name with -2, -3, ... behind it that is free.
  /// Throws Error where that fails, and Error(Exit::usage) where `path` holds a run already.
  RunDirectory(std::string path, const std::string& command, const std::string& net,
               const std::string& claim);
  /// Gives the claim up where nothing was written to it: the run never began.
  ~RunDirectory();
  RunDirectory(const RunDirectory&) = delete;
  RunDirectory& operator=(const RunDirectory&) = delete;

  const std::string& path() const { return path_; }
  std::string file(const std::string& name) const { return path_ + "/" + name; }
  /// Writes a whole file, or none.
  void write(const std::string& name, const std::string& content) const;

 private:
  std::string path_, claim_;
};

}  // namespace duplex::tools
