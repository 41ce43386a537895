#include "layers/exchange/push_queue.h"

#include <utility>

namespace duplex {

PushQueue::~PushQueue() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stop_ = true;
    items_.clear();
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void PushQueue::add(std::unique_ptr<Transfer> transfer, std::function<void()> then) {
  if (!thread_.joinable()) thread_ = std::thread([this] { work(); });
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    items_.push_back({std::move(transfer), std::move(then)});
  }
  changed_.notify_all();
}

void PushQueue::wait() {
  std::unique_lock<std::mutex> lock(mutex_);
  changed_.wait(lock, [this] { return items_.empty() && !busy_; });
  if (failure_) std::rethrow_exception(failure_);
}

void PushQueue::work() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return stop_ || !items_.empty(); });
    if (items_.empty()) return;
    const Item item = std::move(items_.front());
    items_.pop_front();
    busy_ = true;
    const bool skip = failure_ != nullptr;
    lock.unlock();
    std::exception_ptr failure;
    try {
      item.transfer->wait();
      if (!skip) item.then();
    } catch (...) {
      failure = std::current_exception();
    }
    lock.lock();
    if (!failure_) failure_ = failure;
    busy_ = false;
    changed_.notify_all();
  }
}

}  // namespace duplex
