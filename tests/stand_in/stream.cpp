#include "tests/stand_in/stream.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace duplex::stand_in {

void Mark::pass(Time when) {
  {
    const std::lock_guard lock(mutex_);
    passed_ = true;
    when_ = when;
  }
  changed_.notify_all();
}

bool Mark::passed() const {
  const std::lock_guard lock(mutex_);
  return passed_;
}

Time Mark::wait() const {
  std::unique_lock lock(mutex_);
  while (!passed_ && !broken) changed_.wait_for(lock, std::chrono::milliseconds(10));
  return when_;
}

}  // namespace duplex::stand_in

using duplex::stand_in::host_time;
using duplex::stand_in::Mark;

CUstream_st::~CUstream_st() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  worker_.join();
}

void CUstream_st::queue(Job job) {
  {
    const std::lock_guard lock(mutex_);
    if (captured_) return captured_->jobs.push_back(std::move(job));
    jobs_.push_back(
        [job = std::move(job), asked = host_time](Time now) { return job(std::max(now, asked)); });
  }
  changed_.notify_all();
}

void CUstream_st::add(Time takes, std::function<void()> work) {
  queue([takes, work = std::move(work)](Time now) {
    work();
    return now + takes;
  });
}

void CUstream_st::add_mark(std::shared_ptr<Mark> mark) {
  queue([mark = std::move(mark)](Time now) {
    mark->pass(now);
    return now;
  });
}

void CUstream_st::add_wait(std::shared_ptr<const Mark> mark) {
  queue([mark = std::move(mark)](Time now) { return mark ? std::max(now, mark->wait()) : now; });
}

void CUstream_st::begin_capture() {
  const std::lock_guard lock(mutex_);
  captured_ = std::make_unique<CUgraph_st>();
}

void CUstream_st::spoil_capture() {
  const std::lock_guard lock(mutex_);
  if (captured_) captured_->spoilt = true;
}

std::unique_ptr<CUgraph_st> CUstream_st::end_capture() {
  const std::lock_guard lock(mutex_);
  std::unique_ptr<CUgraph_st> captured = std::move(captured_);
  if (captured->spoilt) captured.reset();
  return captured;
}

void CUstream_st::repeat(const CUgraph_st& graph) {
  for (const Job& job : graph.jobs) queue(job);
}

void CUstream_st::pass_time_on() const {
  host_time = std::max(host_time, now_);
}

void CUstream_st::wait() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return is_idle(); });
  pass_time_on();
}

bool CUstream_st::idle() {
  const std::lock_guard lock(mutex_);
  if (is_idle()) pass_time_on();
  return is_idle();
}

void CUstream_st::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return ending_ || !jobs_.empty(); });
    if (jobs_.empty()) return;
    const Job job = std::move(jobs_.front());
    jobs_.pop_front();
    busy_ = true;
    Time now = now_;
    lock.unlock();
    if (!duplex::stand_in::broken) now = job(now);
    lock.lock();
    now_ = now;
    busy_ = false;
    changed_.notify_all();
  }
}
