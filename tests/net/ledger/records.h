// Records made by hand, and the traffic of steps summed up from all records at once: plain, and
// without bounds on memory.
#pragma once
#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "net/ledger/ledger.h"

namespace duplex::net::testing {

inline FrameRecord record(FrameKind kind, bool sent, std::uint64_t step, std::int64_t first,
                          std::int64_t last, std::uint64_t bytes = 100, int peer = -1) {
  FrameRecord r;
  r.kind = kind;
  r.sent = sent;
  r.step = step;
  r.bytes = bytes;
  r.queued = r.first = first;
  r.last = last;
  r.peer = peer;
  return r;
}

/// Adds the frames of a step of a worker with one owner: `chunks` gradients of 3 bytes go out, as
/// many new weights of 5 bytes come in.
inline void add_step(Ledger::Lane& sent, Ledger::Lane& received, std::uint64_t step, int chunks) {
  const auto at = static_cast<std::int64_t>(10000 * step);
  for (int chunk = 0; chunk < chunks; ++chunk) {
    sent.add(record(FrameKind::gradient, true, step, at + 2 * chunk, at + 2 * chunk + 1, 3, 1));
    received.add(
        record(FrameKind::weights, false, step + 1, at + 2 * chunk, at + 2 * chunk + 1, 5, 1));
  }
}

/// By step. The time waited, which belongs to a step of its own, is left out.
inline std::map<std::uint64_t, StepTraffic> traffic_of(const std::vector<FrameRecord>& records,
                                                       const std::vector<Interval>& waits,
                                                       std::uint64_t first_step = 0) {
  struct Step {
    StepTraffic traffic;
    std::vector<Interval> sending, receiving;
  };
  std::map<std::uint64_t, Step> steps;
  for (const FrameRecord& record : records) {
    if (!is_data(record.kind)) continue;
    const std::uint64_t round = round_of(record.kind, record.step);
    if (round == first_step) continue;  // The initial weights belong to no step.
    Step& step = steps[round - 1];
    (record.sent ? step.traffic.sent : step.traffic.received) += record.bytes;
    (record.sent ? step.sending : step.receiving).push_back({record.first, record.last});
  }
  const std::vector<Interval> waited = merged(waits);
  std::map<std::uint64_t, StepTraffic> result;
  for (auto& [number, step] : steps) {
    step.traffic.step = number;
    step.traffic.sending_ns = length(merged(step.sending));
    step.traffic.receiving_ns = length(merged(step.receiving));
    step.sending.insert(step.sending.end(), step.receiving.begin(), step.receiving.end());
    const std::vector<Interval> wire = merged(step.sending);
    step.traffic.wire_ns = length(wire);
    step.traffic.exposed_ns = overlap(wire, waited);
    result[number] = step.traffic;
  }
  return result;
}

/// Collects what TrafficSums gives.
struct Collected {
  std::map<std::uint64_t, StepTraffic> steps;
  std::map<std::uint64_t, int> parts;
  TrafficSums::Take take() {
    return [this](const StepTraffic& part) {
      StepTraffic& step = steps[part.step];
      step.step = part.step;
      step += part;
      ++parts[part.step];
    };
  }
};

}  // namespace duplex::net::testing
