// A run directory: config.json, metrics.csv and what else a run leaves behind (docs: README, "Run
// directories").
#pragma once
#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>

namespace duplex::tools {

class RunDirectory {
 public:
  /// Creates `path` and its parents; an empty path means runs/COMMAND-NET-TIME. Throws Error where
  /// that fails.
  RunDirectory(std::string path, const std::string& command, const std::string& net);

  const std::string& path() const { return path_; }
  std::string file(const std::string& name) const { return path_ + "/" + name; }
  /// Writes a whole file, or none.
  void write(const std::string& name, const std::string& content) const;

 private:
  std::string path_;
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
