#include "net/rounds.h"

#include <algorithm>
#include <utility>

namespace duplex::net {

std::size_t Rounds::add(std::function<void()> wake) {
  const std::lock_guard<std::mutex> lock(mutex_);
  wake_.push_back(std::move(wake));
  earliest_.push_back(none);
  return wake_.size() - 1;
}

std::uint64_t Rounds::first() const {
  return *std::min_element(earliest_.begin(), earliest_.end());
}

bool Rounds::set(std::size_t who, std::uint64_t earliest) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const std::uint64_t before = first();
  earliest_[who] = earliest;
  return first() > before;
}

void Rounds::wake_others(std::size_t who) const {
  for (std::size_t i = 0; i < wake_.size(); ++i)
    if (i != who) wake_[i]();
}

bool Rounds::is_first(std::uint64_t round) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return round <= first();
}

}  // namespace duplex::net
