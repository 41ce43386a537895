// Gradients on their way from a device: pushed, in their order, as soon as each has come.
#pragma once
#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

#include "core/transfer.h"

namespace duplex::tools {

/// Its thread starts with the first transfer: where a device copies at once there is none.
class PushQueue {
 public:
  PushQueue() = default;
  /// What has not been called is not.
  ~PushQueue();
  PushQueue(const PushQueue&) = delete;
  PushQueue& operator=(const PushQueue&) = delete;

  /// Calls `then` once the transfer is done and what was added before has been called; without one
  /// (null), now.
  void add(std::unique_ptr<Transfer> transfer, std::function<void()> then);
  /// Returns when everything has been called. Throws what the first that failed has thrown; those
  /// behind it were not called.
  void wait();

 private:
  struct Item {
    std::unique_ptr<Transfer> transfer;
    std::function<void()> then;
  };

  void work();

  std::mutex mutex_;  ///< Guards all below.
  std::condition_variable changed_;
  std::deque<Item> items_;
  bool busy_ = false, stop_ = false;
  std::exception_ptr failure_;
  std::thread thread_;
};

}  // namespace duplex::tools
