// The end of a run: the last weights, reports, goodbyes, and the ledger against the kernel.
#include <utility>

#include "core/clock.h"
#include "core/error.h"
#include "net/exchange/exchange.h"
#include "net/exchange/lost_ranks.h"

namespace duplex::net {

std::vector<std::string> ParameterExchange::finish(const Report& report) {
  if (is_worker()) {
    await_last_weights();
  } else {
    if (is_async()) wait_until_over();
    close_door();
    wait_for_goodbyes();
    if (is_async()) server_->copy_own_weights();
  }
  await_state_sent();
  std::string own;
  if (report) {
    wait_until_idle();
    own = report();
  }
  const bool tells_lost = is_async() && !is_worker() && !lost().empty();
  const std::string lost_ranks = tells_lost ? encode_ranks(lost()) : std::string();
  peers_.for_each([&](Connection& connection) {
    if (peers_.lost(connection.peer())) return;
    connection.part(connection.peer() == topology_.coordinator() ? own : lost_ranks);
  });
  wait_for_goodbyes();
  const Deadline deadline = Clock::now() + spec_.timeout;
  peers_.for_each([&](Connection& connection) {
    if (peers_.lost(connection.peer())) return;
    try {
      if (!connection.wait_until_sent(deadline))
        throw Error(connection.peer_name() + " does not take this rank's goodbye", Exit::timed_out);
      counted_.push_back(connection.check_counters(deadline));
    } catch (const NetworkError& error) {
      // A worker that is lost here has said goodbye, behind all that it had to say.
      if (!is_async() || is_worker()) throw;
      spec_.warn(error.what());
    }
  });
  peers_.finish();
  finished_ = true;
  if (spec_.state_inbox) spec_.state_inbox->stop();
  try {
    ledger_.close();
  } catch (const Error& error) {  // The training is whole without its books.
    ledger_trouble_ = error.what();
  }
  if (rank_ != topology_.coordinator()) return {};
  std::vector<std::string> reports = peers_.reports();
  reports[static_cast<std::size_t>(rank_)] = std::move(own);
  return reports;
}

/// In an asynchronous run it also tells the owners that this worker pushes no more, unless
/// next_lease() has, and waits for the weights that they send when no worker pushes any more.
void ParameterExchange::await_last_weights() {
  if (!is_worker() || has_last_weights_) return;
  if (takes_leases()) {
    if (next_lease(step_)) throw Error("a worker trains no batches of lost ones");
  } else if (is_async()) {
    await_all();
    incoming_.expect_all(step_ + 1);
    peers_.for_each([this](Connection& connection) { connection.done(step_); });
    server_->done(rank_, step_);
  }
  ending_ = true;
  // The coordinator is sent what it does not train with where the training has come to its end.
  const bool all = server_ && server_->ends_at(step_);
  for (std::size_t p = 0; p < spans_.size(); ++p)
    if (all || map_.trains(rank_, p)) await(p);
  has_last_weights_ = true;
}

/// Waits until all frames are out, so that the ledger has everything that this rank sent.
void ParameterExchange::wait_until_idle() {
  const Deadline deadline = Clock::now() + spec_.timeout;
  peers_.for_each([&](Connection& connection) {
    if (!peers_.lost(connection.peer())) connection.wait_until_idle(deadline);
  });
}

/// This ends in any case: every peer sends heartbeats until its goodbye, or its connection fails.
void ParameterExchange::wait_for_goodbyes() {
  while (!peers_.wait_for_goodbyes(look_every)) {
    const std::exception_ptr trouble = server_ ? server_->trouble() : nullptr;
    if (trouble)
      fail(trouble);
    else
      ledger_.flush();
    if (!trouble) mind_turns();
    if (!trouble) name_stragglers();
    if (!is_worker() && !is_async() && spec_.while_serving) spec_.while_serving();
  }
  peers_.check();
}

/// The frames of the trace come from the ledger.
std::vector<TraceEvent> ParameterExchange::trace() {
  std::vector<TraceEvent> events = trace_.events();
  ledger_.flush();
  const std::vector<TraceEvent> frames = ledger_.traced();
  events.insert(events.end(), frames.begin(), frames.end());
  return events;
}

}  // namespace duplex::net
