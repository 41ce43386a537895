#include "net/connection/send_order.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace duplex::net {

Outgoing Outgoing::of(FrameKind kind, std::int64_t queued) {
  Outgoing frame;
  frame.header.kind = kind;
  frame.queued = queued;
  return frame;
}

Outgoing Outgoing::of(FrameKind kind, const Chunk& chunk, std::uint64_t step,
                      std::uint64_t priority, Coding coding) {
  Outgoing frame;
  frame.header.kind = kind;
  frame.header.coding = coding;
  frame.header.parameter = chunk.parameter;
  frame.header.chunk = chunk.number;
  frame.header.step = step;
  frame.header.length = coded_bytes(coding, chunk.count);
  frame.priority = priority;
  frame.chunk = chunk.index;
  frame.count = chunk.count;
  return frame;
}

std::size_t head_start(std::size_t elements, bool overlap) {
  return overlap ? elements / 4 : elements;
}

bool SendOrder::after(const Outgoing& a, const Outgoing& b) {
  const auto key = [](const Outgoing& frame) {
    return std::make_tuple(round_of(frame.header.kind, frame.header.step), frame.priority,
                           frame.header.kind != FrameKind::weights, frame.number);
  };
  return key(a) > key(b);
}

void SendOrder::take_turns(bool gradients, std::size_t transfer,
                           std::chrono::nanoseconds keep_gradients) {
  gradients_turn_ = gradients ? Turn::none : Turn::always;
  weights_turn_ = transfer > 0 ? Turn::none : Turn::always;
  transfer_ = left_of_transfer_ = transfer;
  linger_ = keep_gradients;
}

void SendOrder::urgent(Outgoing frame, bool first_of_all) {
  urgent_.insert(first_of_all ? urgent_.begin() : urgent_.end(), std::move(frame));
}

SendOrder::TurnRequest SendOrder::data(Outgoing frame) {
  const bool weights = frame.header.kind == FrameKind::weights;
  frame.number = numbered_++;
  Heap& heap = weights ? weights_ : is_map(frame.header.kind) ? maps_ : gradients_;
  heap.push_back(std::move(frame));
  std::push_heap(heap.begin(), heap.end(), after);
  if (!weights || weights_turn_ != Turn::none) return TurnRequest::nothing;
  weights_turn_ = Turn::asked;
  return TurnRequest::want;
}

void SendOrder::background(Outgoing frame) {
  background_.push_back(std::move(frame));
}

void SendOrder::last(Outgoing frame) {
  last_.push_back(std::move(frame));
}

bool SendOrder::grant_gradients() {
  if (gradients_turn_ != Turn::asked) return false;
  gradients_turn_ = Turn::held;
  return true;
}

void SendOrder::grant_weights() {
  weights_turn_ = Turn::held;
}

SendOrder::TurnRequest SendOrder::update_turns(Deadline now) {
  update_gradients_turn(now);
  return update_weights_turn();
}

/// Gives the turn back when no gradient has come for a while, or one of another step has; then asks
/// for the peer's grant if gradients wait for it.
void SendOrder::update_gradients_turn(Deadline now) {
  const auto control = [&](FrameKind kind) {
    urgent_.push_back(Outgoing::of(
        kind,
        std::chrono::duration_cast<std::chrono::nanoseconds>(now.time_since_epoch()).count()));
  };
  if (!gradients_.empty()) keep_gradients_ = now + linger_;
  if (gradients_turn_ == Turn::held) {
    const bool over =
        gradients_.empty()
            ? !last_.empty() || now >= keep_gradients_  // No gradient follows the last frames.
            : turn_step_ && gradients_.front().header.step != *turn_step_;
    if (over) {
      gradients_turn_ = Turn::none;
      turn_step_.reset();
      control(FrameKind::release);
    }
  }
  if (gradients_turn_ == Turn::none && !gradients_.empty()) {
    gradients_turn_ = Turn::asked;
    control(FrameKind::ask);
  }
}

/// Leaves the turn for weights after a transfer, and steps aside when nothing is queued or another
/// should go first.
SendOrder::TurnRequest SendOrder::update_weights_turn() {
  if (std::exchange(gave_up_, false)) {
    // The semaphore has been told; more weights may have been queued meanwhile.
    weights_turn_ = weights_.empty() ? Turn::none : Turn::asked;
    return weights_turn_ == Turn::asked ? TurnRequest::want : TurnRequest::nothing;
  }
  if (weights_turn_ != Turn::held) return TurnRequest::nothing;
  const bool over = left_of_transfer_ == 0, waits = !weights_.empty();
  if (!over && waits && !wanted_) return TurnRequest::nothing;
  if (over) left_of_transfer_ = transfer_;
  wanted_ = false;
  weights_turn_ = Turn::asked;  // If more weights come, update_turns() asks again, not data().
  gave_up_ = over || !waits;
  if (over) return TurnRequest::leave;
  return waits ? TurnRequest::step_aside_waiting : TurnRequest::step_aside;
}

bool SendOrder::take(Outgoing& frame) {
  const auto take_from = [&](Queue& queue) {
    frame = std::move(queue.front());
    queue.erase(queue.begin());
    return true;
  };
  if (!urgent_.empty()) return take_from(urgent_);
  const auto may_leave = [](const Heap& heap, Turn turn) {
    return !heap.empty() && (turn == Turn::always || turn == Turn::held);
  };
  Heap* first = may_leave(gradients_, gradients_turn_) ? &gradients_ : nullptr;
  if (may_leave(weights_, weights_turn_) &&
      (first == nullptr || after(first->front(), weights_.front())))
    first = &weights_;
  if (!maps_.empty()) first = &maps_;
  if (first != nullptr) {
    std::pop_heap(first->begin(), first->end(), after);
    frame = std::move(first->back());
    first->pop_back();
    if (first == &weights_ && weights_turn_ == Turn::held) --left_of_transfer_;
    if (first == &gradients_ && gradients_turn_ == Turn::held) turn_step_ = frame.header.step;
    return true;
  }
  if (!gradients_.empty() || !weights_.empty()) return false;
  if (!background_.empty()) return take_from(background_);
  return !last_.empty() && take_from(last_);
}

std::optional<Deadline> SendOrder::look_again() const {
  if (gradients_turn_ != Turn::held) return std::nullopt;
  return keep_gradients_;
}

bool SendOrder::empty() const {
  return urgent_.empty() && background_.empty() && last_.empty() && maps_.empty() &&
         gradients_.empty() && weights_.empty();
}

}  // namespace duplex::net
