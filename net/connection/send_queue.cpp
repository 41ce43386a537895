#include "net/connection/send_queue.h"

#include <algorithm>
#include <utility>

#include "core/clock.h"

namespace duplex::net {

void SendQueue::take_turns(bool gradients, std::size_t transfer, WeightsTurn turn) {
  const std::lock_guard<std::mutex> lock(mutex_);
  order_.take_turns(gradients, transfer);
  turn_ = std::move(turn);
}

bool SendQueue::urgent(Outgoing frame, bool first_of_all) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!first_of_all && order_.urgent_waiting() >= most_urgent) return closed_;
  order_.urgent(std::move(frame), first_of_all);
  changed_.notify_all();
  return true;
}

void SendQueue::data(Outgoing frame) {
  SendOrder::TurnRequest wants;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    frame.queued = clock_ns();  // Under the lock, so that stamps tell which frames waited together.
    wants = order_.data(std::move(frame));
    changed_.notify_all();
  }
  if (wants != SendOrder::TurnRequest::nothing) turn_(wants);
}

void SendQueue::background(Outgoing frame) {
  const std::lock_guard<std::mutex> lock(mutex_);
  order_.background(std::move(frame));
  changed_.notify_all();
}

void SendQueue::last(Outgoing frame) {
  const std::lock_guard<std::mutex> lock(mutex_);
  order_.last(std::move(frame));
  changed_.notify_all();
}

bool SendQueue::grant_gradients() {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!order_.grant_gradients()) return false;
  changed_.notify_all();
  return true;
}

void SendQueue::grant_weights() {
  const std::lock_guard<std::mutex> lock(mutex_);
  order_.grant_weights();
  changed_.notify_all();
}

void SendQueue::want_weights_turn() {
  const std::lock_guard<std::mutex> lock(mutex_);
  order_.want_weights_turn();
  changed_.notify_all();
}

bool SendQueue::take(Outgoing& frame, std::optional<Deadline> deadline) {
  std::unique_lock<std::mutex> lock(mutex_);
  busy_ = false;
  for (;;) {
    const auto wants = turn_ ? order_.update_turns(Clock::now()) : SendOrder::TurnRequest::nothing;
    if (wants != SendOrder::TurnRequest::nothing) {
      lock.unlock();  // turn_ may call this queue, or another that calls it.
      turn_(wants);
      lock.lock();
      continue;
    }
    if (closed_) return false;
    if (order_.take(frame)) return busy_ = true;
    if (!deadline) return false;
    if (order_.empty()) changed_.notify_all();
    if (Clock::now() >= *deadline) {
      frame = Outgoing::of(FrameKind::heartbeat, clock_ns());
      return busy_ = true;
    }
    changed_.wait_until(lock, std::min(*deadline, order_.look_again().value_or(*deadline)));
  }
}

void SendQueue::close() {
  const std::lock_guard<std::mutex> lock(mutex_);
  closed_ = true;
  changed_.notify_all();
}

bool SendQueue::wait_until_idle(Deadline deadline) {
  std::unique_lock<std::mutex> lock(mutex_);
  return changed_.wait_until(lock, deadline,
                             [this] { return closed_ || (order_.empty() && !busy_); });
}

}  // namespace duplex::net
