#include "net/ledger/traffic.h"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace duplex::net {
namespace {

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  return (*middle + *std::max_element(values.begin(), middle)) / 2;
}

}  // namespace

std::vector<Interval> merged(std::vector<Interval> intervals) {
  std::sort(intervals.begin(), intervals.end(),
            [](const Interval& a, const Interval& b) { return a.from < b.from; });
  std::vector<Interval> result;
  for (const Interval& interval : intervals) {
    if (interval.to <= interval.from) continue;
    if (!result.empty() && interval.from <= result.back().to)
      result.back().to = std::max(result.back().to, interval.to);
    else
      result.push_back(interval);
  }
  return result;
}

std::int64_t overlap(const std::vector<Interval>& a, const std::vector<Interval>& b) {
  std::int64_t sum = 0;
  for (std::size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    const std::int64_t from = std::max(a[i].from, b[j].from);
    const std::int64_t to = std::min(a[i].to, b[j].to);
    if (from < to) sum += to - from;
    if (a[i].to < b[j].to)
      ++i;
    else
      ++j;
  }
  return sum;
}

std::int64_t length(const std::vector<Interval>& merged) {
  std::int64_t sum = 0;
  for (const Interval& interval : merged) sum += interval.to - interval.from;
  return sum;
}

StepTraffic& StepTraffic::operator+=(const StepTraffic& part) {
  sent += part.sent;
  received += part.received;
  sending_ns += part.sending_ns;
  receiving_ns += part.receiving_ns;
  wire_ns += part.wire_ns;
  exposed_ns += part.exposed_ns;
  waited_ns += part.waited_ns;
  saved_sent += part.saved_sent;
  saved_received += part.saved_received;
  return *this;
}

TrafficSummary medians_of(const std::vector<StepTraffic>& steps, std::uint64_t weight_bytes) {
  std::vector<double> sent, received, t_comm, wire, exposed;
  for (const StepTraffic& step : steps) {
    sent.push_back(static_cast<double>(step.sent));
    received.push_back(static_cast<double>(step.received));
    wire.push_back(static_cast<double>(step.wire_ns) * 1e-9);
    exposed.push_back(static_cast<double>(step.exposed_ns) * 1e-9);
    const auto all_weights = [&](std::int64_t busy_ns, std::uint64_t bytes) {
      if (bytes == 0) return 0.0;
      return static_cast<double>(busy_ns) * 1e-9 * static_cast<double>(weight_bytes) /
             static_cast<double>(bytes);
    };
    t_comm.push_back(std::max(all_weights(step.sending_ns, step.sent),
                              all_weights(step.receiving_ns, step.received)));
  }
  TrafficSummary summary;
  summary.steps = steps.size();
  summary.step_sent = median(std::move(sent));
  summary.step_received = median(std::move(received));
  summary.t_comm = median(std::move(t_comm));
  summary.wire_seconds = median(std::move(wire));
  summary.exposed_seconds = median(std::move(exposed));
  return summary;
}

}  // namespace duplex::net
