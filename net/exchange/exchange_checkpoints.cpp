// How the ranks of a run call for checkpoints and take their parts of them, and send each other
// what copies of them need.
#include <utility>

#include "net/exchange/exchange.h"

namespace duplex::net {

/// Every rank passes a new call on to all of its peers, ahead of the gradients and weights that it
/// sends next. So a rank has heard of it from whoever owns the weights that it trains on then.
void ParameterExchange::call_checkpoint(const CheckpointCall& call) {
  // Ranks end there even if a signal has called for the same steps.
  if (call.signal == reached_mark && server_ && !is_async()) end_at(call.steps / spec_.round);
  if (calls_.add(call)) pass_on(call);
}

void ParameterExchange::pass_on(const CheckpointCall& call) {
  peers_.for_each([&](Connection& connection) {
    connection.tell(FrameKind::checkpoint, call.steps, static_cast<std::uint32_t>(call.signal));
  });
}

/// Where the network is cut, the coordinator is sent the last weights of what it does not train.
void ParameterExchange::end_at(std::uint64_t step) {
  if (server_->end_at(step)) incoming_.expect_others_at(step);
}

/// A worker that comes back meanwhile is told here, or by take_back(): that one looks at what is
/// open when its connection is there.
void ParameterExchange::call_and_open_checkpoint(const CheckpointCall& call) {
  if (call.signal != 0) server_->stop_giving();
  calls_.add(call);
  calls_.take(call.steps);
  server_->open(call);
  pass_on(call);
  server_->opened();
}

/// As with a call, whoever owns weights that a rank trains on has passed it on before them.
void ParameterExchange::tell_unwritten(std::uint64_t steps) {
  if (!calls_.add_unwritten(steps)) return;
  peers_.for_each([&](Connection& connection) {
    connection.tell(FrameKind::checkpoint, steps, not_written_mark);
  });
}

void ParameterExchange::ask_for_checkpoint(int signal) {
  Connection* to = peers_.connection(caller());
  if (to != nullptr) to->tell(FrameKind::checkpoint, 0, static_cast<std::uint32_t>(signal));
}

void ParameterExchange::order_snapshot(const CheckpointCall& call) {
  peers_.for_each([&](Connection& connection) {
    if (!topology_.is_worker(connection.peer()))
      connection.tell(FrameKind::snapshot, call.steps, static_cast<std::uint32_t>(call.signal));
  });
}

void ParameterExchange::mark_checkpoint(const CheckpointCall& call) {
  peers_.for_each([&](Connection& connection) {
    if (topology_.is_owner(connection.peer()))
      connection.tell(FrameKind::snapshot, call.steps, static_cast<std::uint32_t>(call.signal));
  });
  if (server_) server_->mark(rank_, call);
}

void ParameterExchange::hear_checkpoint(int peer, std::uint64_t steps, std::uint32_t number) {
  if (steps % spec_.round != 0) throw ProtocolError("no round of steps ends there");
  if (steps == 0) {
    // Each worker of a synchronous run calls for its own.
    if (rank_ != caller() || (!is_async() && topology_.is_worker(peer)))
      throw ProtocolError("this rank calls for none for it");
    calls_.ask(ending_signal(number));
  } else if (number == not_written_mark) {
    tell_unwritten(steps);
  } else {
    call_checkpoint({steps, ending_signal(number)});
  }
}

/// The order of the first worker, or a mark of any worker of an asynchronous run. The worker has
/// pushed no gradient since; so no chunk of a synchronous run changes before this returns.
void ParameterExchange::hear_snapshot(int peer, const CheckpointCall& call) {
  const bool due = is_async() ? server_ && topology_.is_worker(peer)
                              : peer == topology_.workers().front() && !is_worker();
  if (!due || !spec_.snapshot) throw ProtocolError("this rank takes no snapshot for it");
  if (is_async()) {
    if (rank_ == caller() && !calls_.knows(call.steps))
      throw ProtocolError("this rank has not called for that checkpoint");
    server_->require_answered(peer);
    call_checkpoint(call);  // The call may still be on its way here, from another rank.
    server_->mark(peer, call);
    return;
  }
  if (call.signal == reached_mark)
    throw ProtocolError("a training that has come to its end takes no such snapshot");
  const std::uint64_t step = call.steps / spec_.round;
  if (call.steps % spec_.round != 0 || step <= spec_.first_step || !server_->rests_at(step, peer))
    throw ProtocolError("not all chunks are of " + std::to_string(call.steps) + " steps");
  calls_.take(call.steps);
  spec_.snapshot(call);
}

/// A rank that waits here gets on: the others wait for it as long as parts leave it.
void ParameterExchange::await_state_sent() {
  for (std::uint64_t parts = 0; !state_.wait_until_sent(look_every);) {
    peers_.check();
    if (std::exchange(parts, state_.parts()) != state_.parts()) progress_.made();
  }
  peers_.check();
}

}  // namespace duplex::net
