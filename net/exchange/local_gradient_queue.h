// The way of a rank's own gradients to its own store, if the rank is both worker and owner.
#pragma once
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <queue>
#include <thread>
#include <utility>
#include <vector>

#include "net/store/store.h"

namespace duplex::net {

/// A thread submits to the store what is added here, earlier steps first, then earlier chunks. So
/// adding and updating do not hold up the training thread.
class LocalGradientQueue {
 public:
  /// `worker` is this rank's number in the store. `failed` is called with what the store throws;
  /// the thread ends then. The store must outlive the queue.
  LocalGradientQueue(Store& store, int worker, std::function<void(std::exception_ptr)> failed);
  ~LocalGradientQueue();
  LocalGradientQueue(const LocalGradientQueue&) = delete;
  LocalGradientQueue& operator=(const LocalGradientQueue&) = delete;

  /// `gradient` must not change until the chunk's next weights are published.
  void add(std::size_t chunk, std::uint64_t step, const float* gradient);
  /// From now on nothing more is submitted.
  void close();
  /// Closes the queue and waits for the gradient that is being submitted. One thread calls it.
  void join();

 private:
  struct Item {
    std::uint64_t step;
    std::size_t chunk;
    const float* gradient;
    bool operator<(const Item& other) const {  // priority_queue's top is its greatest.
      return std::make_pair(step, chunk) > std::make_pair(other.step, other.chunk);
    }
  };
  void run();
  void submit_all();

  Store& store_;
  const int worker_;
  const std::function<void(std::exception_ptr)> failed_;
  std::mutex mutex_;  ///< Guards items_ and closed_. Any thread takes it, as its only lock.
  std::condition_variable changed_;
  std::priority_queue<Item> items_;
  bool closed_ = false;
  std::thread thread_;
};

}  // namespace duplex::net
