// The way of a rank's own gradients to its own store, where it is both worker and owner.
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

/// A thread that submits to the store what is added here, so that adding and updating do not hold
/// up the training thread: earlier steps first, then earlier chunks.
class LocalGradientQueue {
 public:
  /// `worker`: this rank's, in the store's numbering. `failed` is told what the store throws; the
  /// thread ends then. The store must outlive the queue.
  LocalGradientQueue(Store& store, int worker, std::function<void(std::exception_ptr)> failed);
  ~LocalGradientQueue();
  LocalGradientQueue(const LocalGradientQueue&) = delete;
  LocalGradientQueue& operator=(const LocalGradientQueue&) = delete;

  /// `gradient` must stay as it is until the chunk's next weights are published.
  void add(std::size_t chunk, std::uint64_t step, const float* gradient);
  /// Submits nothing any more, from now on.
  void close();
  /// Closes, and waits for what is being submitted. By one thread.
  void join();

 private:
  struct Item {
    std::uint64_t step;
    std::size_t chunk;
    const float* gradient;
    bool operator<(const Item& other) const {  // The queue's top is its greatest.
      return std::make_pair(step, chunk) > std::make_pair(other.step, other.chunk);
    }
  };
  void run();
  void submit_all();

  Store& store_;
  const int worker_;
  const std::function<void(std::exception_ptr)> failed_;
  std::mutex mutex_;  ///< Guards items_ and closed_. The pushing thread's and this queue's take it.
  std::condition_variable changed_;
  std::priority_queue<Item> items_;
  bool closed_ = false;
  std::thread thread_;
};

}  // namespace duplex::net
