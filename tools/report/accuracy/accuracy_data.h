// Reads accuracy.json, which tools/benchmarks/accuracy leaves beside its trainings.
#pragma once
#include <string>
#include <vector>

namespace duplex::tools::reports {

/// A test of a training: means over the seeds.
struct AccuracyPoint {
  double seconds = 0.0, megabytes = 0.0;  ///< Since the training's begin.
  double top1 = 0.0, deviation = 0.0;     ///< Per cent, and its standard deviation over the seeds.
};

struct AccuracyWay {
  std::string name, flags;
  std::vector<std::string> cells;  ///< As many as AccuracyResults::columns.
  std::vector<AccuracyPoint> points;
};

struct AccuracyNetwork {
  std::string name, about, conclusion;
  double target = 0.0;  ///< Per cent.
  std::vector<AccuracyWay> ways;
};

struct AccuracyResults {
  std::vector<std::string> about;    ///< Paragraphs on how all of it was measured.
  std::vector<std::string> columns;  ///< Headings of the ways' cells.
  std::vector<AccuracyNetwork> networks;
};

/// Returns whether a directory is what tools/benchmarks/accuracy leaves.
bool is_accuracy(const std::string& directory);
/// Throws Error where the file is damaged or of another version.
AccuracyResults read_accuracy(const std::string& directory);

}  // namespace duplex::tools::reports
