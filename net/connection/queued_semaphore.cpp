#include "net/connection/queued_semaphore.h"

#include <algorithm>

namespace duplex::net {

std::deque<QueuedSemaphore::Place>::iterator QueuedSemaphore::place_of(int who) {
  return std::find_if(queue_.begin(), queue_.end(),
                      [who](const Place& place) { return place.who == who; });
}

std::deque<QueuedSemaphore::Place>::const_iterator QueuedSemaphore::place_of(int who) const {
  return std::find_if(queue_.begin(), queue_.end(),
                      [who](const Place& place) { return place.who == who; });
}

bool QueuedSemaphore::has_place(int who) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return place_of(who) != queue_.end();
}

bool QueuedSemaphore::waits(int who) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto place = place_of(who);
  return place != queue_.end() && place->waits && who != holder_;
}

std::optional<int> QueuedSemaphore::awaited() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  const bool others = std::any_of(queue_.begin(), queue_.end(), [this](const Place& place) {
    return place.waits && place.who != holder_;
  });
  if (holder_ == nobody || !others) return std::nullopt;
  return holder_;
}

bool QueuedSemaphore::ask(int who) {
  std::unique_lock<std::mutex> lock(mutex_);
  const auto place = place_of(who);
  if (place == queue_.end())
    queue_.push_back({who, true});
  else if (place->waits)
    return false;
  else
    place->waits = true;
  grant_next(std::move(lock));
  return true;
}

void QueuedSemaphore::step_aside(int who, bool waits) {
  std::unique_lock<std::mutex> lock(mutex_);
  if (holder_ != who) return;
  place_of(who)->waits = waits;
  holder_ = nobody;
  grant_next(std::move(lock));
}

void QueuedSemaphore::leave(int who) {
  std::unique_lock<std::mutex> lock(mutex_);
  const auto place = place_of(who);
  if (place != queue_.end()) queue_.erase(place);
  if (holder_ != who) return;
  holder_ = nobody;
  grant_next(std::move(lock));
}

/// Gives the turn to the first who waits, if nobody holds it; asks the holder to step aside, if
/// somebody waits before it in the queue. The holder counts as waiting, so whoever waits before it
/// had stepped aside.
void QueuedSemaphore::grant_next(std::unique_lock<std::mutex> lock) {
  const auto first =
      std::find_if(queue_.begin(), queue_.end(), [](const Place& place) { return place.waits; });
  if (first == queue_.end() || first->who == holder_) return;
  const int next = first->who, holder = holder_;
  if (holder == nobody) holder_ = next;
  lock.unlock();
  if (holder == nobody)
    granted_(next);
  else
    wanted_(holder);
}

}  // namespace duplex::net
