#include "net/ledger/traffic_sums.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace duplex::net {

TrafficSums::TrafficSums(std::uint64_t first_step, Take take)
    : first_(first_step), take_(std::move(take)) {
  // Resizing touches the memory, so that it does not grow later either.
  waits_.resize(most_waits + 1);
  waits_.clear();
  sums_.resize(window + 1);
  sums_.clear();
}

void TrafficSums::Stretches::add(const Interval& interval) {
  if (list.size() >= join_at) {
    list = merged(std::move(list));
    join_at = std::max(join_at, 2 * list.size());
  }
  list.push_back(interval);
}

TrafficSums::Open& TrafficSums::open(std::uint64_t round) {
  const auto [found, is_new] = open_.try_emplace(round);
  if (is_new) found->second.sums.step = round - 1;
  found->second.over = false;
  return found->second;
}

/// Notes that a stream has come to a round.
void TrafficSums::move(std::uint64_t& stream, std::uint64_t round) {
  if (round + 1 <= stream) return;
  if (stream > 0 && --near_[stream - 1] == 0) near_.erase(stream - 1);
  stream = round + 1;
  ++near_[round];
}

bool TrafficSums::is_near(std::uint64_t round) const {
  const auto found = near_.lower_bound(round - 1);
  return found != near_.end() && found->first <= round + 1;
}

void TrafficSums::add(const FrameRecord& record) {
  if (!is_data(record.kind)) return;
  const std::uint64_t round = round_of(record.kind, record.step);
  const std::size_t kind = is_map(record.kind) ? 2 : record.kind == FrameKind::weights ? 1 : 0;
  const std::size_t stream =
      6 * static_cast<std::size_t>(record.peer + 1) + (record.sent ? 3 : 0) + kind;
  if (stream >= streams_.size()) streams_.resize(stream + 1);
  move(streams_[stream], round);
  if (round <= first_) return;  // The initial weights belong to no step.
  Open& step = open(round);
  (record.sent ? step.sums.sent : step.sums.received) += record.bytes;
  (record.sent ? step.sums.saved_sent : step.sums.saved_received) += record.saved;
  (record.sent ? step.sending : step.receiving).add({record.first, record.last});
  step.end = std::max(step.end, record.last);
}

void TrafficSums::waited(const Interval& wait, std::uint64_t step) {
  waits_.push_back(wait);
  if (step > first_) open(step).sums.waited_ns += wait.to - wait.from;
  if (waits_.size() > most_waits) drop_old_waits();
}

/// A step that is open since a peer has stopped there long ago is summed up while its waits are
/// here.
void TrafficSums::drop_old_waits() {
  const auto half = waits_.begin() + most_waits / 2;
  for (auto step = open_.begin(); step != open_.end();)
    step = step->second.end <= half->from ? close(step) : std::next(step);
  waits_.erase(waits_.begin(), half);
}

StepTraffic TrafficSums::sum_of(const Open& open) const {
  StepTraffic sum = open.sums;
  std::vector<Interval> sending = merged(open.sending.list);
  const std::vector<Interval> receiving = merged(open.receiving.list);
  sum.sending_ns = length(sending);
  sum.receiving_ns = length(receiving);
  sending.insert(sending.end(), receiving.begin(), receiving.end());
  const std::vector<Interval> wire = merged(std::move(sending));
  sum.wire_ns = length(wire);
  if (wire.empty()) return sum;
  std::vector<Interval> waits;
  auto wait =
      std::lower_bound(waits_.begin(), waits_.end(), wire.front().from,
                       [](const Interval& each, std::int64_t begin) { return each.to <= begin; });
  for (; wait != waits_.end(); ++wait)
    if (wait->from < wire.back().to) waits.push_back(*wait);
  sum.exposed_ns = overlap(wire, merged(std::move(waits)));
  return sum;
}

/// Returns the open step behind it.
TrafficSums::OpenSteps::iterator TrafficSums::close(OpenSteps::iterator open) {
  const StepTraffic sum = sum_of(open->second);
  if (take_) take_(sum);
  keep(sum);
  return open_.erase(open);
}

/// Adds it to the window, which loses its lowest step where it is full.
void TrafficSums::keep(const StepTraffic& sum) {
  const auto place = std::lower_bound(
      sums_.begin(), sums_.end(), sum.step,
      [](const StepTraffic& each, std::uint64_t step) { return each.step < step; });
  if (place != sums_.end() && place->step == sum.step)
    *place += sum;
  else if (sums_.size() < window || place != sums_.begin())
    sums_.insert(place, sum);
  if (sums_.size() > window) sums_.erase(sums_.begin());
}

void TrafficSums::close_finished() {
  for (auto step = open_.begin(); step != open_.end();) {
    if (is_near(step->first)) {
      step->second.over = false;
      ++step;
    } else if (step->second.over) {
      step = close(step);
    } else {
      step->second.over = true;
      ++step;
    }
  }
}

void TrafficSums::close() {
  for (auto step = open_.begin(); step != open_.end();) step = close(step);
}

TrafficSummary TrafficSums::summary(std::uint64_t weight_bytes) const {
  std::map<std::uint64_t, StepTraffic> all;
  for (const StepTraffic& sum : sums_) all.emplace_hint(all.end(), sum.step, sum);
  for (const auto& [round, open] : open_) {
    const StepTraffic sum = sum_of(open);
    if (sums_.size() == window && sum.step < sums_.front().step) continue;
    const auto [found, is_new] = all.emplace(sum.step, sum);
    if (!is_new) found->second += sum;
  }
  if (all.size() > 1) all.erase(first_);
  std::vector<StepTraffic> steps;
  for (const auto& [step, traffic] : all) steps.push_back(traffic);
  return medians_of(steps, weight_bytes);
}

std::size_t TrafficSums::held() const {
  std::size_t bytes = streams_.capacity() * sizeof(std::uint64_t) +
                      near_.size() * sizeof(*near_.begin()) + waits_.capacity() * sizeof(Interval) +
                      sums_.capacity() * sizeof(StepTraffic);
  for (const auto& [round, open] : open_)
    bytes += sizeof open +
             (open.sending.list.capacity() + open.receiving.list.capacity()) * sizeof(Interval);
  return bytes;
}

}  // namespace duplex::net
