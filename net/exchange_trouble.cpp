#include <cstdio>
#include <utility>

#include "net/exchange_state.h"

namespace duplex::net {

std::string ParameterExchange::State::name_of_rank(int rank) const {
  if (rank != rank_ && connections_[index(rank)]) return connections_[index(rank)]->peer_name();
  return "rank " + std::to_string(rank);
}

bool ParameterExchange::State::is_lost(int rank) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return lost_[index(rank)];
}

/// A worker of an asynchronous central server is lost: the others go on, if there are any.
void ParameterExchange::State::lose(int peer, const std::exception_ptr& cause) {
  std::string why;
  try {
    std::rethrow_exception(cause);
  } catch (const std::exception& error) {
    why = error.what();
  }
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (finished_ || lost_[index(peer)]) return;
    lost_[index(peer)] = true;
    parted_[index(peer)] = true;
    changed_.notify_all();
  }
  if (lost().size() == workers_.size()) {
    fail(cause);
    return;
  }
  if (spec_.log) spec_.log("going on without " + name_of_rank(peer) + ": " + why);
  connections_[index(peer)]->drop();
  gradients_turn_.leave(peer);
  weights_turn_.leave(peer);
  store_->done(topology_.worker_number(peer), true);
}

/// The first cause counts: it is what every call throws from then on, and what the peers are
/// told.
void ParameterExchange::State::fail(const std::exception_ptr& cause) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (failure_ || finished_) return;
    failure_ = cause;
    changed_.notify_all();
  }
  if (own_lane_) own_lane_->close();
  if (store_) store_->stop();
  const AbortReason reason = reason_of(cause);
  for (auto& connection : connections_)
    if (connection) connection->abort(reason);
}

Error ParameterExchange::State::error_of(const Store::Overdue& overdue) const {
  std::string ranks;
  for (const int worker : overdue.missing)
    ranks += (ranks.empty() ? "" : ", ") + name_of_rank(workers_[index(worker)]);
  char seconds[32];
  std::snprintf(seconds, sizeof seconds, "%.1f s", overdue.seconds);
  return Error(ranks + ": no gradient of " + spans_[map_[overdue.chunk].parameter].name +
                   " for step " + std::to_string(overdue.step) + " within " + seconds,
               Exit::timed_out);
}

Error ParameterExchange::State::left_early(int rank) const {
  return Error(name_of_rank(rank) +
               " ended its training while this rank goes on: give every "
               "rank as many batches");
}

/// What this rank's store waits for in vain, if anything. Lets the lock go meanwhile.
std::exception_ptr ParameterExchange::State::trouble_of_waiting(
    std::unique_lock<std::mutex>& lock) {
  if (!store_) return nullptr;
  lock.unlock();
  const auto open = store_->overdue(std::chrono::seconds(0));
  const auto overdue = store_->overdue(spec_.timeout);
  lock.lock();
  if (overdue) return std::make_exception_ptr(error_of(*overdue));
  if (!open) return nullptr;
  for (const int worker : open->missing)
    if (parted_[index(workers_[index(worker)])])
      return std::make_exception_ptr(left_early(workers_[index(worker)]));
  return nullptr;
}

/// What the weights of p wait for in vain. Under the mutex.
std::exception_ptr ParameterExchange::State::trouble_with(std::size_t p, bool overdue,
                                                          std::chrono::milliseconds allowed) const {
  for (std::size_t chunk = map_.first(p); chunk < map_.first(p + 1); ++chunk) {
    const int owner = map_[chunk].owner;
    if (owner == rank_ || incoming_[chunk].state == Incoming::here) continue;
    if (parted_[index(owner)]) return std::make_exception_ptr(left_early(owner));
    if (overdue)
      return std::make_exception_ptr(NetworkError(
          "await", name_of_rank(owner),
          "waiting for weights of " + spans_[p].name + " for step " +
              std::to_string(incoming_[chunk].step),
          "deadline passed", std::chrono::duration<double>(allowed).count(), Exit::timed_out));
  }
  if (overdue)
    return std::make_exception_ptr(Error(
        "rank " + std::to_string(rank_) + " waited in vain for its own share of " + spans_[p].name,
        Exit::timed_out));
  return nullptr;
}

}  // namespace duplex::net
