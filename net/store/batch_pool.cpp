#include "net/store/batch_pool.h"

#include <algorithm>
#include <string>
#include <utility>

#include "net/wire/frame.h"

namespace duplex::net {

BatchPool::BatchPool(const std::vector<StepRange>& own, Undone undone,
                     std::optional<std::uint64_t> total)
    : undone_(std::move(undone)),
      workers_(own.size()),
      trained_by_others_(own.size(), std::vector<std::uint64_t>(own.size())) {
  for (std::size_t worker = 0; worker < own.size(); ++worker) workers_[worker].own = own[worker];
  if (total) learn_total(*total);
}

void BatchPool::idle(int worker, std::uint64_t total) {
  if (at(worker).state != State::trains) throw ProtocolError("it has ended its training already");
  learn_total(total);
  end_lease(worker);
  at(worker).state = State::idle;
  at(worker).own = {};
}

/// As soon as somebody tells how many steps there are, what nobody trains is free.
void BatchPool::learn_total(std::uint64_t total) {
  const std::uint64_t known = total_.value_or(0);
  if (total_ && total <= known) return;
  for (int each = 0; each < static_cast<int>(workers_.size()); ++each) {
    Worker& worker = at(each);
    const bool has_end = worker.own.end != to_its_end;
    if (worker.state == State::lost && !total_)
      free_undone(each, {std::exchange(worker.own, {}).first, total});
    else if (worker.state == State::lost)
      free_undone(each, {known, total});
    else if (has_end && worker.state != State::idle && !worker.lease)
      free_undone(each, {std::max(known, worker.own.end), total});
  }
  total_ = total;
}

/// Batches that the lessee has trained to their end are done; the others are free again.
void BatchPool::end_lease(int lessee) {
  if (!at(lessee).lease) return;
  const Lease lease = *at(lessee).lease;
  at(lessee).lease.reset();
  const std::uint64_t before = at(lease.worker).free.count();
  free_undone(lease.worker, lease.steps);
  const std::uint64_t undone = at(lease.worker).free.count() - before;
  trained_by_others_[static_cast<std::size_t>(lease.worker)][static_cast<std::size_t>(lessee)] +=
      lease.steps.count() - undone;
}

void BatchPool::free_undone(int worker, const StepRange& steps) {
  if (steps.first >= steps.end) return;
  for (const StepRange& range : undone_(worker, steps)) at(worker).free.add(range);
}

void BatchPool::leave(int worker) {
  if (at(worker).state != State::lost) at(worker).state = State::leaving;
}

void BatchPool::lose(int worker) {
  Worker& lost = at(worker);
  if (lost.state == State::lost) return;
  end_lease(worker);
  lost.state = State::lost;
  // How many steps there are is known when somebody has trained all of them.
  if (!total_) return;
  const StepRange own = std::exchange(lost.own, {});
  free_undone(worker, {own.first, std::min(own.end, *total_)});
}

std::optional<StepRange> BatchPool::come_back(int worker) {
  Worker& back = at(worker);
  if (over_ || stopped_ || back.state != State::lost) return std::nullopt;
  if (total_) {
    back.own = back.free.take_first();
    if (back.own.count() == 0) back.own = {*total_, *total_};
  } else {
    const std::vector<StepRange> left = undone_(worker, back.own);
    back.own.first = left.empty() ? back.own.end : left.front().first;
  }
  back.state = State::trains;
  return back.own;
}

std::optional<Lease> BatchPool::lease(int worker) {
  if (stopped_ || at(worker).state != State::idle) return std::nullopt;
  std::uint64_t free = 0;
  int most = worker;
  for (int each = 0; each < static_cast<int>(workers_.size()); ++each) {
    free += at(each).free.count();
    if (at(each).free.count() > at(most).free.count()) most = each;
  }
  if (free == 0) return std::nullopt;
  // Towards the end they become shorter, so that all end at about the same time.
  const std::uint64_t share = free / (2 * workers_.size());
  Lease lease{most, at(most).free.take_last(std::clamp<std::uint64_t>(share, 1, most_leased))};
  at(worker).lease = lease;
  at(worker).state = State::trains;
  return lease;
}

void BatchPool::stop() {
  stopped_ = true;
}

bool BatchPool::over() {
  if (over_) return true;
  for (const Worker& worker : workers_) {
    if (worker.state == State::trains || worker.state == State::leaving) return false;
    if (!stopped_ && !worker.free.empty()) return false;
  }
  // Where all are lost and nobody has told how many steps there are, batches may be left.
  if (!stopped_ && !total_) return false;
  return over_ = true;
}

}  // namespace duplex::net
