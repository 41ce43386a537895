// A Chrome trace of all ranks, which Perfetto (ui.perfetto.dev) and chrome://tracing open.
#pragma once
#include <string>
#include <vector>

#include "layers/model.h"
#include "net/ledger/trace.h"

namespace duplex::tools {

/// The trace that one rank sends to the coordinator at the end of a run.
struct RankTrace {
  std::string name;                     ///< "rank 1 on lab3", for people.
  std::int64_t clock_error_ns = 0;      ///< Most error of its clock against the coordinator's.
  std::vector<net::TraceEvent> events;  ///< On the coordinator's clock.
};

/// Leaves of each rank the last `steps` steps that it has computed, with their waits, frames and
/// work of the store; of one that computes nothing, those of the rank that has come furthest. What
/// is awaited and received after the last step stays.
void keep_last_steps(std::vector<RankTrace>& ranks, std::uint64_t steps);

std::string encode(const RankTrace& trace);
/// Throws ProtocolError for bytes that encode() cannot have made.
RankTrace decode_rank_trace(const std::string& bytes);

/// The names of the parameters and routes that a trace has by their numbers.
struct TraceNames {
  std::vector<std::string> parameters;  ///< As the wire counts them.
  std::vector<std::string> maps;  ///< By route: the layer whose output crosses there, if any do.

  /// Those of a network that is not cut.
  static TraceNames of(const Model& model);
};

/// Writes the trace. Each rank is a process, with rows for computing by layer, waiting, the store's
/// work, and each direction of each connection; arrows join the two ends of a frame. Every wait
/// says what it was for (tools/tracing/critical_path.h). Throws Error if `path` cannot be written.
void write_trace(const std::string& path, const Model& model, TraceNames names,
                 const std::vector<RankTrace>& ranks);

/// A line for each rank that waited: how long a step, and for what. `averages`: their steps are
/// averagings of the weights.
std::string waiting_report(const std::vector<RankTrace>& ranks, bool averages);

}  // namespace duplex::tools
