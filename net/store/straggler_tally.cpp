#include "net/store/straggler_tally.h"

#include <algorithm>
#include <utility>

namespace duplex::net {

StragglerTally::StragglerTally(std::vector<std::size_t> chunks)
    : chunks_(std::move(chunks)), workers_(chunks_.size()) {
  for (std::size_t worker = 0; worker < workers_.size(); ++worker) {
    workers_[worker].sum.worker = static_cast<int>(worker);
    senders_ += chunks_[worker] > 0 ? 1 : 0;
  }
}

std::int64_t StragglerTally::received(const Worker& worker, std::int64_t now) const {
  return worker.received_ns + (worker.coming > 0 ? now - worker.began : 0);
}

void StragglerTally::begins(int worker, std::int64_t now) {
  const std::lock_guard<std::mutex> lock(mutex_);
  Worker& its = workers_[static_cast<std::size_t>(worker)];
  if (its.coming++ == 0) its.began = now;
}

void StragglerTally::complete(int number, std::uint64_t at, std::int64_t now) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto index = static_cast<std::size_t>(number);
  Worker& worker = workers_[index];
  worker.received_ns = received(worker, now);
  worker.began = now;
  if (worker.coming > 0) --worker.coming;
  Step& step = steps_[at];
  if (step.gradients.empty()) {
    step.gradients.resize(workers_.size());
    step.missing = senders_;
  }
  if (++step.gradients[index] < chunks_[index]) return;
  --step.missing;
  if (step.missing == 1) {
    step.alone_since = now;
    for (const Worker& each : workers_) step.received_ns.push_back(received(each, now));
  } else if (step.missing == 0) {
    if (senders_ > 1) {
      ++worker.sum.steps;
      worker.sum.late_ns += now - step.alone_since;
      worker.sum.receiving_ns += worker.received_ns - step.received_ns[index];
    }
    steps_.erase(at);
  }
}

std::vector<StragglerTime> StragglerTally::sums() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::vector<StragglerTime> sums;
  for (const Worker& worker : workers_)
    if (worker.sum.steps > 0) sums.push_back(worker.sum);
  std::stable_sort(sums.begin(), sums.end(), [](const StragglerTime& a, const StragglerTime& b) {
    return a.late_ns > b.late_ns;
  });
  return sums;
}

}  // namespace duplex::net
