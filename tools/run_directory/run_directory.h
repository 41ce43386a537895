// A run directory: config.json, metrics.csv and what else a run leaves behind
// (docs/run-directory.md).
#pragma once
#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>

namespace duplex::tools {

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

/// One row of metrics.csv. Seconds of one step.
struct StepMetrics {
  std::uint64_t step = 0, epoch = 0;
  std::optional<double> loss;
  float rate = 0.0F;
  double total = 0.0;     ///< From the end of the step before to the end of this one.
  double data = 0.0;      ///< Waiting for the batch.
  double gradient = 0.0;  ///< Forward and backward, without the exchange's calls: t_grad.
  double await = 0.0;     ///< Waiting for weights.
  double push = 0.0;      ///< Handing gradients over; alone: updating the weights.
};

/// Rows that can be read while the run goes on. Throws Error where a file cannot be written.
class RowFile {
 public:
  RowFile(std::string path, const std::string& columns);
  void write(const std::string& row);

 private:
  std::string path_;
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> file_;
};

/// metrics.csv, a row a step.
class MetricsFile {
 public:
  explicit MetricsFile(const std::string& path);
  void write(const StepMetrics& row);

 private:
  RowFile file_;
};

}  // namespace duplex::tools
