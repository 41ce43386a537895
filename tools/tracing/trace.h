// A Chrome trace of all ranks: what Perfetto (ui.perfetto.dev) and chrome://tracing open.
#pragma once
#include <string>
#include <vector>

#include "layers/model.h"
#include "net/ledger/trace.h"

namespace duplex::tools {

/// What one rank tells the coordinator at the end of a run.
struct RankTrace {
  std::string name;                     ///< "rank 1 on lab3", for people.
  std::int64_t clock_error_ns = 0;      ///< Of its clock against the coordinator's, at most.
  std::vector<net::TraceEvent> events;  ///< In the coordinator's time.
};

std::string encode(const RankTrace& trace);
/// Throws ProtocolError where the bytes are none of encode's.
RankTrace decode_rank_trace(const std::string& bytes);

/// Writes the trace. A process a rank, and in it rows for computing by layer, waiting, the store's
/// work, and each direction of each connection; arrows join the two ends of a frame. Every wait
/// says what it was for (tools/tracing/critical_path.h). Throws Error where `path` cannot be
/// written.
void write_trace(const std::string& path, const Model& model, const std::vector<RankTrace>& ranks);

/// A line a rank that waited: how long a step and for what.
std::string waiting_report(const std::vector<RankTrace>& ranks);

}  // namespace duplex::tools
