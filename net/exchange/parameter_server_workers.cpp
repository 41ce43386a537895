// An owner's side of workers that end, are lost, come back and mark checkpoints, in an asynchronous
// run.
#include <string>

#include "net/exchange/parameter_server.h"

namespace duplex::net {

void ParameterServer::require_answered(int rank) const {
  if (!store_->answered(worker_of(rank)))
    throw ProtocolError("it has not had the weights that answer its gradients");
}

void ParameterServer::require_parting(int rank) const {
  if (gradients_turn_.has_place(rank)) throw ProtocolError("it has not given back its turn");
  if (!store_->owes_nothing(worker_of(rank)))
    throw ProtocolError("it has not had the weights that it is owed");
}

void ParameterServer::done(int rank, std::uint64_t steps) {
  require_answered(rank);
  if (context_.spec.steps && steps != *context_.spec.steps)
    throw ProtocolError("its training has " + std::to_string(steps) +
                        " steps, and this run's has " + std::to_string(*context_.spec.steps));
  const int worker = worker_of(rank);
  // Before the last weights leave, with which other ranks end.
  take_snapshots(marks_.end(worker));
  if (store_->done(worker, false) && !pool_) store_->publish_last();
  if (!pool_) return;
  const std::lock_guard<std::mutex> lock(work_mutex_);
  pool_->idle(worker, steps);
  give_work();
}

void ParameterServer::lose(int rank) {
  gradients_turn_.leave(rank);
  weights_turn_.leave(rank);
  const int worker = worker_of(rank);
  {
    // If it got a lease, checkpoints would wait for its marks.
    const std::lock_guard<std::mutex> lock(work_mutex_);
    pool_->leave(worker);
  }
  take_snapshots(marks_.end(worker));
  store_->done(worker, true);
  const std::lock_guard<std::mutex> lock(work_mutex_);
  pool_->lose(worker);
  give_work();
}

bool ParameterServer::is_lost(int rank) const {
  const std::lock_guard<std::mutex> lock(work_mutex_);
  return pool_ && pool_->is_lost(worker_of(rank));
}

/// Leases what is free to those that are idle; when nothing is left and nobody trains, sends the
/// last weights.
void ParameterServer::give_work() {
  const auto tell = [&](int worker, const Lease& lease) {
    const int rank = workers_[static_cast<std::size_t>(worker)];
    context_.peers.connection(rank)->tell(FrameKind::lease, lease.steps.first,
                                          static_cast<std::uint32_t>(lease.worker),
                                          static_cast<std::uint32_t>(lease.steps.count()));
  };
  const int workers = static_cast<int>(workers_.size());
  for (int worker = 0; worker < workers; ++worker)
    if (const std::optional<Lease> lease = pool_->lease(worker)) {
      store_->assign(worker, *lease);
      marks_.begin(worker);
      tell(worker, *lease);
    }
  if (over_ || !pool_->over()) return;
  over_ = true;
  for (int worker = 0; worker < workers; ++worker)
    if (pool_->is_idle(worker)) tell(worker, {});
  store_->publish_last();
  work_changed_.notify_all();
}

std::optional<ParameterServer::Return> ParameterServer::come_back(int rank) {
  const std::lock_guard<std::mutex> lock(work_mutex_);
  const std::optional<StepRange> steps = pool_->come_back(worker_of(rank));
  if (!steps) return std::nullopt;
  return Return{*steps, marks_.begin(worker_of(rank))};
}

void ParameterServer::begin_again(int rank, std::uint64_t step) {
  store_->begin_again(worker_of(rank), step);
}

bool ParameterServer::wait_until_over(std::chrono::milliseconds at_most) {
  std::unique_lock<std::mutex> lock(work_mutex_);
  return work_changed_.wait_for(lock, at_most, [this] { return over_ || !pool_; });
}

std::vector<std::vector<std::uint64_t>> ParameterServer::trained_by_others() const {
  const std::lock_guard<std::mutex> lock(work_mutex_);
  if (!pool_) return {};
  return pool_->trained_by_others();
}

bool ParameterServer::over() const {
  const std::lock_guard<std::mutex> lock(work_mutex_);
  return over_;
}

void ParameterServer::stop_giving() {
  const std::lock_guard<std::mutex> lock(work_mutex_);
  pool_->stop();
}

void ParameterServer::open(const CheckpointCall& call) {
  take_snapshots(marks_.open(call));
}

void ParameterServer::opened() {
  const std::lock_guard<std::mutex> lock(work_mutex_);
  give_work();  // Where a signal ends the training, it may be over now.
}

void ParameterServer::mark(int rank, const CheckpointCall& call) {
  take_snapshots(marks_.mark(worker_of(rank), call));
}

void ParameterServer::take_snapshots(const std::vector<CheckpointCall>& calls) {
  for (const CheckpointCall& call : calls)
    if (context_.spec.snapshot) context_.spec.snapshot(call);
}

}  // namespace duplex::net
