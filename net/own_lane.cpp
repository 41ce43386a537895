#include "net/own_lane.h"

namespace duplex::net {

OwnLane::OwnLane(Store& store, int worker)
    : store_(store), worker_(worker), thread_([this] { run(); }) {}

OwnLane::~OwnLane() {
  stop();
}

void OwnLane::put(std::size_t chunk, std::uint64_t step, const float* gradient) {
  const std::lock_guard<std::mutex> lock(mutex_);
  items_.push({step, chunk, gradient});
  changed_.notify_one();
}

void OwnLane::close() {
  const std::lock_guard<std::mutex> lock(mutex_);
  closed_ = true;
  changed_.notify_one();
}

void OwnLane::stop() {
  close();
  if (thread_.joinable()) thread_.join();
}

void OwnLane::run() {
  std::unique_lock<std::mutex> lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return closed_ || !items_.empty(); });
    if (closed_) return;
    const Item next = items_.top();
    items_.pop();
    lock.unlock();
    store_.give(next.chunk, worker_, next.step, next.gradient);
    lock.lock();
  }
}

}  // namespace duplex::net
