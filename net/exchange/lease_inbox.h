// Where a worker of an asynchronous run gets the batches that it trains in place of lost ones.
#pragma once
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <utility>

#include "net/store/step_ranges.h"

namespace duplex::net {

/// Any thread may call it.
class LeaseInbox {
 public:
  /// The worker waits from now on.
  void open() {
    const std::lock_guard<std::mutex> lock(mutex_);
    open_ = true;
  }
  bool is_open() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return open_;
  }

  /// Puts a lease in; an empty one: there are no more. Returns false where none is waited for.
  bool put(const Lease& lease) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!open_ || lease_) return false;
    lease_ = lease;
    changed_.notify_all();
    return true;
  }

  /// Waits for what comes, for so long at most; none: nothing has come. The worker waits no more
  /// when something has.
  std::optional<Lease> take(std::chrono::milliseconds at_most) {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait_for(lock, at_most, [this] { return lease_.has_value(); });
    if (lease_) open_ = false;
    return std::exchange(lease_, std::nullopt);
  }

 private:
  mutable std::mutex mutex_;  ///< Guards all below; no other lock is taken meanwhile.
  std::condition_variable changed_;
  bool open_ = false;
  std::optional<Lease> lease_;
};

}  // namespace duplex::net
