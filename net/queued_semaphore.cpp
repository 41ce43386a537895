#include "net/queued_semaphore.h"

#include <algorithm>

namespace duplex::net {

bool QueuedSemaphore::ask(int who) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (holder_ == who || std::find(queue_.begin(), queue_.end(), who) != queue_.end())
      return false;
    if (holder_ != nobody) {
      queue_.push_back(who);
      return true;
    }
    holder_ = who;
  }
  granted_(who);
  return true;
}

void QueuedSemaphore::leave(int who) {
  int next = nobody;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (holder_ != who) {
      queue_.erase(std::remove(queue_.begin(), queue_.end(), who), queue_.end());
      return;
    }
    if (!queue_.empty()) {
      next = queue_.front();
      queue_.pop_front();
    }
    holder_ = next;
  }
  if (next != nobody) granted_(next);
}

}  // namespace duplex::net
