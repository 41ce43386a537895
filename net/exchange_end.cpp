// The end of a run: the last weights, reports, goodbyes, and the ledger against the kernel.
#include <utility>

#include "net/exchange_state.h"

namespace duplex::net {

std::vector<std::string> ParameterExchange::State::finish(const Report& report) {
  if (is_worker()) {
    await_all();
    if (is_async()) await_last_weights();
  } else {
    wait_for_goodbyes();
    if (is_async()) take_own_weights();
  }
  std::string own;
  if (report) {
    wait_until_idle();
    own = report();
  }
  for (auto& connection : connections_)
    if (connection && !is_lost(connection->peer()))
      connection->part(connection->peer() == topology_.hub() ? own : std::string());
  wait_for_goodbyes();
  const Deadline deadline = Clock::now() + spec_.timeout;
  for (auto& connection : connections_) {
    if (!connection || is_lost(connection->peer())) continue;
    if (!connection->wait_until_sent(deadline))
      throw Error(connection->peer_name() + " does not take this rank's goodbye", Exit::timed_out);
    counted_.push_back(connection->check_counters(deadline));
  }
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (failure_) std::rethrow_exception(failure_);
    finished_ = true;
  }
  ledger_.close();
  if (rank_ != topology_.hub()) return {};
  reports_[index(rank_)] = std::move(own);
  return reports_;
}

void ParameterExchange::State::await_all() {
  for (std::size_t p = 0; p < spans_.size(); ++p) await(p);
}

/// Asynchronous: tells the owners that this worker pushes no more, and waits for what they send
/// when that is so of every worker.
void ParameterExchange::State::await_last_weights() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (std::size_t chunk = 0; chunk < incoming_.size(); ++chunk) {
      incoming_[chunk] = {step_ + 1, Incoming::due};
      ++remaining_[map_[chunk].parameter];
    }
  }
  for (auto& connection : connections_)
    if (connection && topology_.is_owner(connection->peer())) connection->done();
  if (store_) store_->done(topology_.worker_number(rank_), false);
  await_all();
}

/// So that the ledger knows of everything that this rank sent.
void ParameterExchange::State::wait_until_idle() {
  const Deadline deadline = Clock::now() + spec_.timeout;
  for (auto& connection : connections_)
    if (connection && !is_lost(connection->peer())) connection->wait_until_idle(deadline);
}

/// Asynchronous: a server's store has weights of its own.
void ParameterExchange::State::take_own_weights() {
  for (std::size_t chunk = 0; chunk < map_.chunks(); ++chunk)
    store_->read(chunk, 0, spans_[map_[chunk].parameter].weights + map_[chunk].offset);
}

/// Every peer shows signs of life until its goodbye, or its connection fails: this ends.
void ParameterExchange::State::wait_for_goodbyes() {
  std::unique_lock<std::mutex> lock(mutex_);
  const auto all = [this] {
    for (std::size_t rank = 0; rank < connections_.size(); ++rank)
      if (connections_[rank] && !parted_[rank]) return false;
    return true;
  };
  while (!failure_ && !all()) {
    if (changed_.wait_for(lock, look_every) == std::cv_status::no_timeout) continue;
    std::exception_ptr trouble = trouble_of_waiting(lock);
    if (!trouble) {
      if (!is_worker()) ledger_.settle();
      continue;
    }
    lock.unlock();
    fail(trouble);
    lock.lock();
  }
  if (failure_) std::rethrow_exception(failure_);
}

}  // namespace duplex::net
