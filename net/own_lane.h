// The way of a rank's own gradients to its own store, where it is both worker and owner.
#pragma once
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <queue>
#include <thread>
#include <utility>
#include <vector>

#include "net/store.h"

namespace duplex::net {

/// A thread that gives the store what is put here, so that adding and updating do not hold up the
/// training thread: earlier steps first, then earlier chunks.
class OwnLane {
 public:
  /// `worker`: this rank's, in the store's numbering. The store must outlive the lane.
  OwnLane(Store& store, int worker);
  ~OwnLane();
  OwnLane(const OwnLane&) = delete;
  OwnLane& operator=(const OwnLane&) = delete;

  /// `gradient` must stay as it is until the chunk's next weights are published.
  void put(std::size_t chunk, std::uint64_t step, const float* gradient);
  /// Gives nothing any more, from now on.
  void close();
  /// Closes, and waits for what is being given. By one thread.
  void stop();

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

  Store& store_;
  const int worker_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::priority_queue<Item> items_;
  bool closed_ = false;
  std::thread thread_;
};

}  // namespace duplex::net
