#include "tools/tracing/rank_tracing.h"

#include <algorithm>
#include <utility>

#include "tools/run_directory/run_files.h"
#include "tools/text/host_name.h"
#include "tools/text/quartiles.h"

namespace duplex::tools {

LayerObserver RankTracing::observer() {
  if (steps_ == 0) return {};
  return [this](std::size_t node, Phase phase, std::int64_t begin, std::int64_t end) {
    net::TraceEvent event;
    event.kind =
        phase == Phase::forward ? net::TraceEvent::Kind::forward : net::TraceEvent::Kind::backward;
    event.parameter = static_cast<std::uint32_t>(node);
    event.step = step_;
    event.from = begin;
    event.to = end;
    computed_.add(event);
  };
}

net::ParameterExchange::Report RankTracing::report(net::ParameterExchange& wire) const {
  if (steps_ == 0) return {};
  return [this, &wire] {
    RankTrace trace;
    trace.name = "rank " + std::to_string(wire.rank()) + " on " + host_name();
    const net::CoordinatorTime& time_of = wire.ledger().coordinator_time();
    trace.clock_error_ns = time_of.error_ns;
    trace.events = wire.trace();
    const std::vector<net::TraceEvent> computed = computed_.events();
    trace.events.insert(trace.events.end(), computed.begin(), computed.end());
    for (net::TraceEvent& event : trace.events) {
      for (std::int64_t* time : {&event.queued, &event.from, &event.to}) *time = time_of.of(*time);
    }
    return encode(trace);
  };
}

std::string RankTracing::write(const std::vector<std::string>& reports,
                               const RunDirectory& directory, const Model& model,
                               TraceNames names) const {
  if (steps_ == 0 || reports.empty()) return "";
  std::vector<RankTrace> ranks(reports.size());
  std::int64_t error = 0;
  for (std::size_t rank = 0; rank < reports.size(); ++rank) {
    if (reports[rank].empty()) continue;  // That rank does not trace.
    ranks[rank] = decode_rank_trace(reports[rank]);
    error = std::max(error, ranks[rank].clock_error_ns);
  }
  keep_last_steps(ranks, steps_);
  const std::string path = directory.file(trace_file);
  write_trace(path, model, std::move(names), ranks);
  return waiting_report(ranks, average_ > 0) + "trace    " + path + ", clocks within " +
         duration_text(static_cast<double>(error) * 1e-9) + "\n";
}

}  // namespace duplex::tools
