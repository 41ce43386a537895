// trace.json, as dist and simulate write it (tools/tracing/trace.h).
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace duplex::tools::reports {

struct TraceSpan {
  int rank = 0, row = 0;
  std::string name, category;
  std::string waits_for;  ///< The weights that a wait was for; empty for other events.
  std::int64_t step = 0;
  double begin = 0.0, takes = 0.0;  ///< Microseconds.
};

struct LayerSeconds {
  std::string name;
  double forward = 0.0, backward = 0.0;
};

struct TraceData {
  std::map<int, std::string> ranks;                 ///< Names.
  std::map<std::pair<int, int>, std::string> rows;  ///< Names, by rank and row.
  std::vector<TraceSpan> spans;                     ///< By begin.

  /// The last `steps` steps that each rank has computed alone; of one that computes nothing, those
  /// of the rank that has come furthest.
  TraceData last(int steps) const;
  /// Returns the mean seconds of a rank's layers in a batch, of which it computes `micro_batches`
  /// parts, in their order; empty if it does not compute.
  std::vector<LayerSeconds> layers(int rank, std::uint64_t micro_batches) const;
};

/// Throws Error where the file is no trace, damaged or of another version of duplex.
TraceData read_trace(const std::string& path);

}  // namespace duplex::tools::reports
