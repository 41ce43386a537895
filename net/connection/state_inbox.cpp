#include "net/connection/state_inbox.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "net/connection/connection.h"
#include "net/wire/frame.h"

namespace duplex::net {

void StateInbox::expect(int owner, std::size_t values) {
  owners_[owner].values = values;
}

void StateInbox::add(int owner, std::uint64_t steps, std::uint32_t number,
                     const std::string& bytes) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = owners_.find(owner);
  if (found == owners_.end() || found->second.values == 0)
    throw ProtocolError("this rank awaits no state from it");
  Owner& from = found->second;
  auto entry = from.open.find(steps);
  if (entry == from.open.end()) {
    if (number != 0 || steps <= from.last || from.open.size() == most_open)
      throw ProtocolError("the state of a checkpoint after " + std::to_string(steps) +
                          " steps is not due");
    from.last = steps;
    entry = from.open.emplace(steps, State()).first;
    entry->second.values.resize(from.values);
  }
  State& state = entry->second;
  const std::size_t left = state.values.size() * sizeof(float) - state.bytes;
  if (number != state.next || bytes.size() != std::min(Connection::state_part, left) || left == 0)
    throw ProtocolError("part " + std::to_string(number) + " of " + std::to_string(bytes.size()) +
                        " bytes where part " + std::to_string(state.next) + " of " +
                        std::to_string(std::min(Connection::state_part, left)) + " is due");
  std::memcpy(reinterpret_cast<char*>(state.values.data()) + state.bytes, bytes.data(),
              bytes.size());
  state.bytes += bytes.size();
  ++state.next;
  ++parts_;
  if (bytes.size() == left) changed_.notify_all();
}

/// The caller holds the mutex.
bool StateInbox::is_whole(const Owner& from, std::uint64_t steps) const {
  const auto entry = from.open.find(steps);
  return entry != from.open.end() &&
         entry->second.bytes == entry->second.values.size() * sizeof(float);
}

bool StateInbox::wait(int owner, std::uint64_t steps, std::chrono::milliseconds at_most) {
  std::unique_lock<std::mutex> lock(mutex_);
  const Owner& from = owners_.at(owner);
  return changed_.wait_for(lock, at_most,
                           [&] { return from.values == 0 || stopped_ || is_whole(from, steps); });
}

std::optional<std::vector<float>> StateInbox::take(int owner, std::uint64_t steps) {
  std::unique_lock<std::mutex> lock(mutex_);
  Owner& from = owners_.at(owner);
  if (from.values == 0) return std::vector<float>();
  changed_.wait(lock, [&] { return stopped_ || is_whole(from, steps); });
  if (!is_whole(from, steps)) return std::nullopt;
  std::vector<float> values = std::move(from.open.at(steps).values);
  from.open.erase(steps);
  return values;
}

std::uint64_t StateInbox::parts() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return parts_;
}

void StateInbox::stop() {
  const std::lock_guard<std::mutex> lock(mutex_);
  stopped_ = true;
  changed_.notify_all();
}

}  // namespace duplex::net
