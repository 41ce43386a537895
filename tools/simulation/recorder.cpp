#include "tools/simulation/recorder.h"

namespace duplex::tools::simulation {
namespace {

constexpr std::size_t flush_after = 1024;  ///< Frames.

}  // namespace

Recorder::Recorder(const std::vector<net::LedgerPaths>& paths, const net::FrameSample& sample,
                   std::uint64_t trace_steps, const std::function<void(const std::string&)>& log)
    : trace_steps_(trace_steps) {
  for (std::size_t rank = 0; rank < paths.size(); ++rank) {
    net::LedgerSpec spec;
    spec.rank = static_cast<int>(rank);
    spec.paths = paths[rank];
    spec.sample = sample;
    spec.trace_steps = trace_steps;
    spec.log = log;
    ranks_.push_back(std::make_unique<Rank>(spec));
  }
}

void Recorder::frame(int rank, const net::FrameRecord& record) {
  Rank& kept = *ranks_[static_cast<std::size_t>(rank)];
  kept.lane.add(record);
  if (++kept.unflushed < flush_after) return;
  kept.unflushed = 0;
  kept.ledger.flush();
}

void Recorder::waited(int rank, const net::Interval& interval, std::uint64_t step) {
  ranks_[static_cast<std::size_t>(rank)]->ledger.waited(interval, step);
}

void Recorder::event(int rank, const net::TraceEvent& event) {
  ranks_[static_cast<std::size_t>(rank)]->window.add(event);
}

void Recorder::close() {
  for (auto& rank : ranks_) rank->ledger.close();
}

std::vector<RankTrace> Recorder::trace() const {
  std::vector<RankTrace> traces;
  for (const auto& rank : ranks_) {
    RankTrace trace;
    trace.name = "rank " + std::to_string(traces.size()) + ", simulated";
    trace.events = rank->window.events();
    const std::vector<net::TraceEvent> frames = rank->ledger.traced();
    trace.events.insert(trace.events.end(), frames.begin(), frames.end());
    traces.push_back(std::move(trace));
  }
  keep_last_steps(traces, trace_steps_);
  return traces;
}

}  // namespace duplex::tools::simulation
