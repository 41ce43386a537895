#include "net/connection/state_outbox.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/clock.h"

namespace duplex::net {

void StateOutbox::send(Connection& to, std::uint64_t steps, std::vector<StateValues> arrays) {
  std::optional<Outgoing> first;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (stopped_) return;
    to_ = &to;
    steps_ = steps;
    arrays_ = std::move(arrays);
    next_ = 0;
    number_ = 0;
    first = next_part();
  }
  if (first) to.send_state(std::move(*first));
}

void StateOutbox::part_sent() {
  std::optional<Outgoing> next;
  Connection* to = nullptr;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    ++parts_;
    to = to_;
    if (!stopped_ && to != nullptr) next = next_part();
    changed_.notify_all();
  }
  if (next) to->send_state(std::move(*next));
}

/// Makes the next frame; none: all have been sent, and the arrays are given back.
std::optional<Outgoing> StateOutbox::next_part() {
  Outgoing frame = Outgoing::of(FrameKind::state, clock_ns());
  while (frame.own.size() < Connection::state_part) {
    if (sent_ == values_.size()) {
      if (next_ == arrays_.size()) break;
      StateValues array = std::move(arrays_[next_++]);
      values_.resize(array.count);
      sent_ = 0;
      if (array.count > 0) array.get(values_.data());
      continue;
    }
    const std::size_t before = frame.own.size();
    const std::size_t count =
        std::min((Connection::state_part - before) / sizeof(float), values_.size() - sent_);
    frame.own.resize(before + count * sizeof(float));
    std::memcpy(frame.own.data() + before, values_.data() + sent_, count * sizeof(float));
    sent_ += count;
  }
  if (frame.own.empty()) {
    arrays_.clear();
    values_ = {};
    sent_ = 0;
    to_ = nullptr;
    return std::nullopt;
  }
  frame.header.step = steps_;
  frame.header.parameter = number_++;
  frame.header.length = frame.own.size();
  return frame;
}

bool StateOutbox::wait_until_sent(std::chrono::milliseconds at_most) {
  std::unique_lock<std::mutex> lock(mutex_);
  return changed_.wait_for(lock, at_most, [this] { return stopped_ || to_ == nullptr; });
}

std::uint64_t StateOutbox::parts() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return parts_;
}

void StateOutbox::stop() {
  const std::lock_guard<std::mutex> lock(mutex_);
  stopped_ = true;
  arrays_.clear();
  changed_.notify_all();
}

}  // namespace duplex::net
