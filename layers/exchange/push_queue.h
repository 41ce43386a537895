// Queues gradients that a device copies to the host, and pushes each, in order, once it has come.
#pragma once
#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

#include "core/transfer.h"

namespace duplex {

/// Starts its thread with the first transfer.
class PushQueue {
 public:
  PushQueue() = default;
  /// Drops the calls that have not been made.
  ~PushQueue();
  PushQueue(const PushQueue&) = delete;
  PushQueue& operator=(const PushQueue&) = delete;

  /// Calls `then`, in the queue's thread, once the transfer is done and all calls added before have
  /// been made.
  void add(std::unique_ptr<Transfer> transfer, std::function<void()> then);
  /// Returns when all calls have been made. If one failed, throws the exception of the first that
  /// did; the calls behind it were not made.
  void wait();

 private:
  struct Item {
    std::unique_ptr<Transfer> transfer;
    std::function<void()> then;
  };

  void work();

  /// Guards all below but thread_. The training thread and the queue's take it.
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Item> items_;
  bool busy_ = false, stop_ = false;
  std::exception_ptr failure_;
  std::thread thread_;
};

}  // namespace duplex
