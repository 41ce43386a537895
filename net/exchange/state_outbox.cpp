#include "net/exchange/state_outbox.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/clock.h"

namespace duplex::net {

void StateOutbox::send(int to, std::uint64_t steps, HeldValues values) {
  std::optional<Outgoing> first;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (stopped_) return;
    to_ = to;
    steps_ = steps;
    values_ = std::move(values);
    array_ = offset_ = 0;
    number_ = 0;
    first = next_part();
  }
  if (first) peers_.connection(to)->send_state(std::move(*first));
}

void StateOutbox::part_sent() {
  std::optional<Outgoing> next;
  int to = -1;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    ++parts_;
    to = to_;
    if (!stopped_ && to >= 0) next = next_part();
    changed_.notify_all();
  }
  if (next) peers_.connection(to)->send_state(std::move(*next));
}

/// Makes the next frame; none: all have been sent, and the values are given back.
std::optional<Outgoing> StateOutbox::next_part() {
  Outgoing frame = Outgoing::of(FrameKind::state, clock_ns());
  constexpr std::size_t most = Connection::state_part / sizeof(float);
  while (array_ < values_.size() && frame.own.size() / sizeof(float) < most) {
    const std::vector<float>& array = *values_[array_];
    const std::size_t before = frame.own.size();
    const std::size_t count = std::min(most - before / sizeof(float), array.size() - offset_);
    frame.own.resize(before + count * sizeof(float));
    if (count > 0)
      std::memcpy(frame.own.data() + before, array.data() + offset_, count * sizeof(float));
    offset_ += count;
    if (offset_ < array.size()) break;
    values_[array_++].reset();
    offset_ = 0;
  }
  if (frame.own.empty()) {
    values_.clear();
    to_ = -1;
    return std::nullopt;
  }
  frame.header.step = steps_;
  frame.header.parameter = number_++;
  frame.header.length = frame.own.size();
  return frame;
}

bool StateOutbox::wait_until_sent(std::chrono::milliseconds at_most) {
  std::unique_lock<std::mutex> lock(mutex_);
  return changed_.wait_for(lock, at_most, [this] { return stopped_ || to_ < 0; });
}

std::uint64_t StateOutbox::parts() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return parts_;
}

void StateOutbox::stop() {
  const std::lock_guard<std::mutex> lock(mutex_);
  stopped_ = true;
  values_.clear();
  changed_.notify_all();
}

}  // namespace duplex::net
