#include "net/exchange/local_gradient_queue.h"

namespace duplex::net {

LocalGradientQueue::LocalGradientQueue(Store& store, int worker,
                                       std::function<void(std::exception_ptr)> failed)
    : store_(store), worker_(worker), failed_(std::move(failed)), thread_([this] { run(); }) {}

LocalGradientQueue::~LocalGradientQueue() {
  join();
}

void LocalGradientQueue::add(std::size_t chunk, std::uint64_t step, const float* gradient) {
  const std::lock_guard<std::mutex> lock(mutex_);
  items_.push({step, chunk, gradient});
  changed_.notify_one();
}

void LocalGradientQueue::close() {
  const std::lock_guard<std::mutex> lock(mutex_);
  closed_ = true;
  changed_.notify_one();
}

void LocalGradientQueue::join() {
  close();
  if (thread_.joinable()) thread_.join();
}

void LocalGradientQueue::run() {
  try {
    submit_all();
  } catch (...) {
    failed_(std::current_exception());
  }
}

void LocalGradientQueue::submit_all() {
  std::unique_lock<std::mutex> lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return closed_ || !items_.empty(); });
    if (closed_) return;
    const Item next = items_.top();
    items_.pop();
    lock.unlock();
    store_.submit(next.chunk, worker_, next.step, next.gradient);
    lock.lock();
  }
}

}  // namespace duplex::net
