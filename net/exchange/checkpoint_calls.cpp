#include "net/exchange/checkpoint_calls.h"

#include <algorithm>
#include <csignal>
#include <string>
#include <utility>

#include "net/wire/frame.h"

namespace duplex::net {

int ending_signal(std::uint32_t number) {
  if (number != 0 && number != SIGINT && number != SIGTERM && number != pause_mark &&
      number != reached_mark)
    throw ProtocolError("signal " + std::to_string(number) + " ends no training");
  return static_cast<int>(number);
}

int stronger(int signal, int other) {
  const auto weight = [](int each) {
    return each == pause_mark ? 1 : each == reached_mark ? 2 : 2 * each;
  };
  return weight(signal) >= weight(other) ? signal : other;
}

bool CheckpointCalls::add(const CheckpointCall& call) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (call.steps <= over_) return false;
  const auto [entry, added] = open_.emplace(call.steps, call.signal);
  if (!added) {  // Whichever came first, all ranks take the same.
    const int taken = stronger(call.signal, entry->second);
    return std::exchange(entry->second, taken) != taken;
  }
  if (open_.size() > most_open) throw ProtocolError("too many checkpoints were called for");
  return true;
}

bool CheckpointCalls::knows(std::uint64_t steps) {
  const std::lock_guard<std::mutex> lock(mutex_);
  return steps <= over_ || open_.count(steps) != 0;
}

std::optional<CheckpointCall> CheckpointCalls::take(std::uint64_t steps) {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::optional<CheckpointCall> call;
  const auto entry = open_.find(steps);
  if (entry != open_.end()) call = CheckpointCall{entry->first, entry->second};
  open_.erase(open_.begin(), open_.upper_bound(steps));
  over_ = std::max(over_, steps);
  return call;
}

std::optional<CheckpointCall> CheckpointCalls::oldest() {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (open_.empty()) return std::nullopt;
  return CheckpointCall{open_.begin()->first, open_.begin()->second};
}

bool CheckpointCalls::add_unwritten(std::uint64_t steps) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (unwritten_.size() == most_open && steps < *unwritten_.begin()) return false;
  const bool is_new = unwritten_.insert(steps).second;
  if (unwritten_.size() > most_open) unwritten_.erase(unwritten_.begin());
  return is_new;
}

std::set<std::uint64_t> CheckpointCalls::unwritten() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return unwritten_;
}

void CheckpointCalls::ask(int signal) {
  const std::lock_guard<std::mutex> lock(mutex_);
  asked_ = stronger(signal, asked_.value_or(0));
}

std::optional<int> CheckpointCalls::take_asked() {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::optional<int> asked;
  asked.swap(asked_);
  return asked;
}

}  // namespace duplex::net
