#include "net/ledger/ledger.h"

#include <algorithm>
#include <limits>
#include <map>

#include "net/ledger/ledger_row.h"

namespace duplex::net {
namespace {

/// flush() takes over the records of a lane that has at least so many, even if not asked for all.
constexpr std::size_t flush_above = 1024;

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

std::vector<StepTraffic> traffic_by_step(const std::vector<FrameRecord>& records,
                                         const std::vector<Interval>& waits) {
  struct Step {
    StepTraffic traffic;
    std::vector<Interval> sending, receiving;
  };
  std::map<std::uint64_t, Step> steps;
  for (const FrameRecord& record : records) {
    if (!is_data(record.kind)) continue;
    const std::uint64_t round = round_of(record.kind, record.step);
    if (round == 0) continue;  // The initial weights belong to no step.
    Step& step = steps[round - 1];
    (record.sent ? step.traffic.sent : step.traffic.received) += record.bytes;
    (record.sent ? step.sending : step.receiving).push_back({record.first, record.last});
  }
  const std::vector<Interval> waited = merged(waits);
  std::vector<StepTraffic> result;
  for (auto& [number, step] : steps) {
    step.traffic.step = number;
    step.sending = merged(std::move(step.sending));
    step.receiving = merged(std::move(step.receiving));
    step.traffic.sending_ns = length(step.sending);
    step.traffic.receiving_ns = length(step.receiving);
    step.sending.insert(step.sending.end(), step.receiving.begin(), step.receiving.end());
    const std::vector<Interval> wire = merged(std::move(step.sending));
    step.traffic.wire_ns = length(wire);
    step.traffic.exposed_ns = overlap(wire, waited);
    result.push_back(step.traffic);
  }
  return result;
}

void Ledger::Lane::add(const FrameRecord& record) {
  const std::lock_guard<std::mutex> lock(mutex_);
  fresh_.push_back(record);
  (record.sent ? sent_ : received_) += record.bytes;
}

std::uint64_t Ledger::Lane::sent() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return sent_;
}

std::uint64_t Ledger::Lane::received() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return received_;
}

Ledger::Ledger(int rank, const CoordinatorTime& time, const std::string& path)
    : rank_(rank), time_(time), path_(path) {
  if (path_.empty()) return;
  file_.open(path_, std::ios::trunc);
  if (!file_) throw Error("ledger " + path_ + " cannot be written: is its folder there?");
  file_ << csv_columns<LedgerRow>() << std::endl;  // A reader may come before the first rows.
}

Ledger::Lane& Ledger::lane() {
  lanes_.emplace_back();
  lanes_.back().fresh_.reserve(2 * flush_above);
  return lanes_.back();
}

void Ledger::waited(const Interval& interval) {
  waits_.push_back(interval);
}

void Ledger::flush(bool all) {
  std::vector<FrameRecord> taken;
  for (Lane& lane : lanes_) {
    const std::lock_guard<std::mutex> lock(lane.mutex_);
    if (!all && lane.fresh_.size() < flush_above) continue;
    taken.insert(taken.end(), lane.fresh_.begin(), lane.fresh_.end());
    lane.fresh_.clear();
  }
  if (taken.empty()) return;
  for (const FrameRecord& record : taken) {
    if (file_.is_open()) write(record);
    // Other frames have something else in the field for the step.
    if (!is_data(record.kind)) continue;
    newest_ = std::max(newest_, record.step);
    records_.push_back(record);
  }

  // Let twice the window gather before the older half is erased, so that records are seldom moved.
  if (oldest_ + 2 * window >= newest_) return;
  oldest_ = newest_ - window;
  records_.erase(std::remove_if(records_.begin(), records_.end(),
                                [&](const FrameRecord& r) { return r.step < oldest_; }),
                 records_.end());
  std::int64_t begin = std::numeric_limits<std::int64_t>::max();
  for (const FrameRecord& record : records_) begin = std::min(begin, record.first);
  waits_.erase(std::remove_if(waits_.begin(), waits_.end(),
                              [&](const Interval& wait) { return wait.to < begin; }),
               waits_.end());
}

void Ledger::write(const FrameRecord& record) {
  LedgerRow row;
  row.rank = rank_;
  row.sent = record.sent;
  row.peer = record.peer;
  row.kind = name_of(record.kind);
  row.step = record.step;
  row.parameter = record.parameter;
  row.chunk = record.chunk;
  row.bytes = record.bytes;
  row.queued_ns = time_.of(record.queued);
  row.first_ns = time_.of(record.first);
  row.last_ns = time_.of(record.last);
  line_.clear();
  CsvWriter writer(line_);
  describe(writer, row);
  line_ += '\n';
  file_.write(line_.data(), static_cast<std::streamsize>(line_.size()));
}

void Ledger::close() {
  flush(true);
  if (!file_.is_open()) return;
  file_.close();
  if (!file_) throw Error("ledger " + path_ + " is incomplete: it cannot be written (disk full?)");
}

FrameBytes Ledger::bytes() const {
  FrameBytes sum;
  for (const Lane& lane : lanes_) {
    sum.sent += lane.sent();
    sum.received += lane.received();
  }
  return sum;
}

TrafficSummary Ledger::summary(std::uint64_t weight_bytes) const {
  TrafficSummary summary;
  summary.bytes_sent = bytes().sent;
  summary.bytes_received = bytes().received;
  std::vector<StepTraffic> steps = traffic_by_step(records_, waits_);
  if (steps.size() > 1) steps.erase(steps.begin());
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
  summary.steps = steps.size();
  summary.step_sent = median(std::move(sent));
  summary.step_received = median(std::move(received));
  summary.t_comm = median(std::move(t_comm));
  summary.wire_seconds = median(std::move(wire));
  summary.exposed_seconds = median(std::move(exposed));
  return summary;
}

}  // namespace duplex::net
