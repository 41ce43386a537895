#include "course/11_schedule/central_step.h"

#include <algorithm>
#include <numeric>
#include <optional>

#include "core/error.h"

namespace duplex::course {
namespace {

using exercise::Transfer;

double sum(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0);
}

/// One direction of the server's link.
class Link {
 public:
  Link(const char* function, NextTransfer* next) : function_(function), next_(next) {}

  void add(const Transfer& transfer) { waiting_.push_back(transfer); }

  /// Begins with the next transfer, if none is on the way and one waits.
  void advance(double now) {
    if (now_ || waiting_.empty()) return;
    const auto count = static_cast<std::int32_t>(waiting_.size());
    const std::int32_t chosen = next_(waiting_.data(), count, last_);
    if (chosen < 0 || chosen >= count)
      throw Error(std::string(function_) + "() returned " + std::to_string(chosen) + ", but " +
                  (count == 1 ? "1 transfer waits, number 0"
                              : std::to_string(count) + " transfers wait, numbered from 0"));
    now_ = waiting_[static_cast<std::size_t>(chosen)];
    waiting_.erase(waiting_.begin() + chosen);
    last_ = now_->worker;
    end_ = now + now_->seconds;
  }

  /// Returns when the transfer ends that is on the way.
  std::optional<double> end() const { return now_ ? std::optional<double>(end_) : std::nullopt; }
  Transfer take() {
    const Transfer transfer = *now_;
    now_.reset();
    return transfer;
  }

 private:
  const char* function_;
  NextTransfer* next_;
  std::vector<Transfer> waiting_;
  std::optional<Transfer> now_;
  double end_ = 0.0;
  std::int32_t last_ = -1;
};

struct Worker {
  std::int32_t step = 0, layer = 0;
  bool backward = false;
  std::optional<double> end;           ///< When it has computed the layer.
  std::vector<std::int32_t> versions;  ///< By tensor: the step of the weights that it has.
};

constexpr std::int32_t played = 8, left_out = 4;

}  // namespace

double CentralTraining::comm_seconds() const {
  return sum(comm);
}

double CentralTraining::grad_seconds() const {
  return sum(forward) + sum(backward);
}

double CentralTraining::least_seconds() const {
  const double slowest = 1.0 + 0.01 * (workers - 1);
  return std::max(workers * comm_seconds(), slowest * grad_seconds());
}

double step_seconds(const CentralTraining& training, NextTransfer* next_gradient,
                    NextTransfer* next_weights) {
  const auto tensors = static_cast<std::int32_t>(training.comm.size());
  Link in("next_gradient", next_gradient), out("next_weights", next_weights);
  std::vector<Worker> workers(static_cast<std::size_t>(training.workers));
  for (Worker& worker : workers) worker.versions.assign(training.comm.size(), 0);
  std::vector<std::int32_t> arrived(training.comm.size());
  const auto at = [](std::int32_t i) { return static_cast<std::size_t>(i); };
  double now = 0.0, begin = 0.0;

  /// Lets a worker compute the next layer if it can.
  const auto advance = [&](std::size_t w) {
    Worker& worker = workers[w];
    if (worker.end || worker.step == played) return;
    if (!worker.backward && worker.versions[at(worker.layer)] < worker.step) return;
    const auto& seconds = worker.backward ? training.backward : training.forward;
    worker.end = now + seconds[at(worker.layer)] * (1.0 + 0.01 * static_cast<double>(w));
  };
  /// A worker has computed a layer.
  const auto computed = [&](std::size_t w) {
    Worker& worker = workers[w];
    worker.end.reset();
    if (worker.backward) {
      in.add({static_cast<std::int32_t>(w), worker.layer, training.comm[at(worker.layer)]});
      if (worker.layer-- > 0) return;
      worker.layer = 0;
      worker.backward = false;
      ++worker.step;
    } else if (++worker.layer == tensors) {
      --worker.layer;
      worker.backward = true;
    }
  };

  for (;;) {
    for (std::size_t w = 0; w < workers.size(); ++w) advance(w);
    in.advance(now);
    out.advance(now);
    std::optional<double> next = in.end();
    const auto sooner = [&](const std::optional<double>& end) {
      if (end && (!next || *end < *next)) next = end;
    };
    sooner(out.end());
    for (const Worker& worker : workers) sooner(worker.end);
    if (!next) break;
    now = *next;
    for (std::size_t w = 0; w < workers.size(); ++w)
      if (workers[w].end && *workers[w].end <= now) computed(w);
    if (in.end() && *in.end() <= now) {
      const Transfer transfer = in.take();
      if (++arrived[at(transfer.tensor)] == training.workers) {
        arrived[at(transfer.tensor)] = 0;
        for (std::int32_t w = 0; w < training.workers; ++w)
          out.add({w, transfer.tensor, transfer.seconds});
      }
    }
    if (out.end() && *out.end() <= now) {
      const Transfer transfer = out.take();
      Worker& worker = workers[at(transfer.worker)];
      const std::int32_t version = ++worker.versions[at(transfer.tensor)];
      if (version == left_out &&
          *std::min_element(worker.versions.begin(), worker.versions.end()) == left_out)
        begin = now;  // The last worker's time stays.
    }
  }
  return (now - begin) / (played - left_out);
}

std::int32_t queued_semaphore(const Transfer* waiting, std::int32_t count, std::int32_t last) {
  for (std::int32_t i = 0; i < count; ++i)
    if (waiting[i].worker == last) return i;
  return 0;
}

}  // namespace duplex::course
