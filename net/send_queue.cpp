#include "net/send_queue.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace duplex::net {
namespace {

/// Rounds order the frames of the training. New weights come back in the round whose gradients made
/// them; the first ones are a round before all.
std::uint64_t round_of(const FrameHeader& header) {
  return header.kind == FrameKind::weights ? header.step : header.step + 1;
}

/// How long a turn outlasts what there was to send: more may be on its way here.
constexpr std::chrono::milliseconds linger{1};

}  // namespace

Outgoing Outgoing::of(FrameKind kind) {
  Outgoing frame;
  frame.header.kind = kind;
  frame.queued = now_ns();
  return frame;
}

bool SendQueue::after(const Outgoing& a, const Outgoing& b) {
  const auto key = [](const Outgoing& frame) {
    return std::make_tuple(round_of(frame.header), frame.place,
                           frame.header.kind != FrameKind::weights, frame.number);
  };
  return key(a) > key(b);
}

void SendQueue::take_turns(bool gradients, std::size_t transfer, WeightsTurn turn) {
  const std::lock_guard<std::mutex> lock(mutex_);
  gradients_turn_ = gradients ? Turn::none : Turn::always;
  weights_turn_ = transfer > 0 ? Turn::none : Turn::always;
  transfer_ = left_of_transfer_ = transfer;
  turn_ = std::move(turn);
}

void SendQueue::urgent(Outgoing frame, bool first_of_all) {
  const std::lock_guard<std::mutex> lock(mutex_);
  urgent_.insert(first_of_all ? urgent_.begin() : urgent_.end(), std::move(frame));
  changed_.notify_all();
}

void SendQueue::data(Outgoing frame) {
  const bool weights = frame.header.kind == FrameKind::weights;
  bool wants = false;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    frame.queued = now_ns();  // Of frames in the queue together, the stamps say so.
    frame.number = numbered_++;
    Heap& heap = weights ? weights_ : gradients_;
    heap.push_back(std::move(frame));
    std::push_heap(heap.begin(), heap.end(), after);
    wants = weights && weights_turn_ == Turn::none;
    if (wants) weights_turn_ = Turn::asked;
    changed_.notify_all();
  }
  if (wants) turn_.want();
}

void SendQueue::last(Outgoing frame) {
  const std::lock_guard<std::mutex> lock(mutex_);
  last_.push_back(std::move(frame));
  changed_.notify_all();
}

bool SendQueue::grant_gradients() {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (gradients_turn_ != Turn::asked) return false;
  gradients_turn_ = Turn::held;
  changed_.notify_all();
  return true;
}

void SendQueue::grant_weights() {
  const std::lock_guard<std::mutex> lock(mutex_);
  weights_turn_ = Turn::held;
  changed_.notify_all();
}

void SendQueue::want_weights_turn() {
  const std::lock_guard<std::mutex> lock(mutex_);
  wanted_ = true;
  changed_.notify_all();
}

/// Asks for the peer's grant if it is needed, and gives it back when nothing has been sent for a
/// while.
void SendQueue::mind_gradients() {
  const Deadline now = Clock::now();
  if (!gradients_.empty()) keep_gradients_ = now + linger;
  if (gradients_turn_ == Turn::none && !gradients_.empty()) {
    gradients_turn_ = Turn::asked;
    urgent_.push_back(Outgoing::of(FrameKind::ask));
  } else if (gradients_turn_ == Turn::held && gradients_.empty() &&
             (!last_.empty() || now >= keep_gradients_)) {  // After the last, nobody comes back.
    gradients_turn_ = Turn::none;
    urgent_.push_back(Outgoing::of(FrameKind::release));
  }
}

/// Leaves the turn for weights after a transfer, and steps aside where it must. Lets the lock go
/// while it talks to the owner; true: it did, and things may have changed.
bool SendQueue::mind_weights(std::unique_lock<std::mutex>& lock) {
  if (weights_turn_ != Turn::held) return false;
  const bool over = left_of_transfer_ == 0, waits = !weights_.empty();
  if (!over && waits && !wanted_) return false;
  if (over) left_of_transfer_ = transfer_;
  wanted_ = false;
  weights_turn_ = Turn::asked;  // Here, not in data(), if more come meanwhile.
  lock.unlock();
  over ? turn_.leave() : turn_.step_aside(waits);
  lock.lock();
  if (waits && !over) return true;
  weights_turn_ = weights_.empty() ? Turn::none : Turn::asked;
  if (weights_turn_ == Turn::none) return true;
  lock.unlock();
  turn_.want();
  lock.lock();
  return true;
}

/// The first of those frames that may leave.
bool SendQueue::take_first(Outgoing& frame) {
  const auto take = [&](std::deque<Outgoing>& queue) {
    frame = std::move(queue.front());
    queue.pop_front();
    return true;
  };
  if (!urgent_.empty()) return take(urgent_);
  const auto may_leave = [](const Heap& heap, Turn turn) {
    return !heap.empty() && (turn == Turn::always || turn == Turn::held);
  };
  Heap* first = may_leave(gradients_, gradients_turn_) ? &gradients_ : nullptr;
  if (may_leave(weights_, weights_turn_) &&
      (first == nullptr || after(first->front(), weights_.front())))
    first = &weights_;
  if (first != nullptr) {
    std::pop_heap(first->begin(), first->end(), after);
    frame = std::move(first->back());
    first->pop_back();
    if (first == &weights_ && weights_turn_ == Turn::held) --left_of_transfer_;
    return true;
  }
  return !last_.empty() && gradients_.empty() && weights_.empty() && take(last_);
}

bool SendQueue::next(Outgoing& frame, Deadline deadline) {
  std::unique_lock<std::mutex> lock(mutex_);
  busy_ = false;
  for (;;) {
    mind_gradients();
    while (mind_weights(lock)) {
    }
    if (closed_) return false;
    if (take_first(frame)) break;
    if (idle()) changed_.notify_all();
    if (Clock::now() >= deadline) {
      frame = Outgoing::of(FrameKind::alive);
      break;
    }
    Deadline until = deadline;
    if (gradients_turn_ == Turn::held) until = std::min(until, keep_gradients_);
    changed_.wait_until(lock, until);
  }
  busy_ = true;
  return true;
}

void SendQueue::close() {
  const std::lock_guard<std::mutex> lock(mutex_);
  closed_ = true;
  changed_.notify_all();
}

bool SendQueue::idle() const {
  return urgent_.empty() && last_.empty() && gradients_.empty() && weights_.empty() && !busy_;
}

bool SendQueue::wait_until_idle(Deadline deadline) {
  std::unique_lock<std::mutex> lock(mutex_);
  return changed_.wait_until(lock, deadline, [this] { return closed_ || idle(); });
}

}  // namespace duplex::net
