// Waits for maps of other ranks, where a network is cut over them.
#include "core/clock.h"
#include "core/error.h"
#include "net/exchange/exchange.h"

namespace duplex::net {

MapTrafficSpec ParameterExchange::map_spec() const {
  MapTrafficSpec spec;
  spec.routes = spec_.maps;
  spec.micro_batches = spec_.micro_batches;
  spec.in_flight = spec_.in_flight;
  spec.first_step = spec_.first_step;
  return spec;
}

/// The wait goes on while any peer makes progress, as in await().
void ParameterExchange::check_wait(int rank, const std::string& what, Deadline begin) {
  const auto allowed = spec_.timeout + spec_.timeout / 10 + 10 * look_every;
  if (Clock::now() - std::max(begin, progress_.last_of_others()) >= allowed)
    fail(std::make_exception_ptr(
        NetworkError("await", peers_.name_of(rank), "waiting for " + what, "deadline passed",
                     std::chrono::duration<double>(allowed).count(), Exit::timed_out)));
  peers_.check();
}

void ParameterExchange::wait_for_maps(std::uint64_t known) {
  peers_.check();
  const std::int64_t from = clock_ns();
  const auto allowed = spec_.timeout + spec_.timeout / 10 + 10 * look_every;
  const Deadline begin = Clock::now();
  while (!maps_->wait(known, look_every) && !peers_.failed()) {
    ledger_.flush();
    std::exception_ptr trouble = server_ ? server_->trouble() : nullptr;
    const auto due = maps_->due();
    const bool parted = due && peers_.parted(due->rank);
    if (!trouble && parted && maps_->arrivals() == known)
      trouble = std::make_exception_ptr(peers_.left_early(due->rank));
    const bool overdue = Clock::now() - std::max(begin, progress_.last_of_others()) >= allowed;
    if (!trouble && overdue)
      trouble = std::make_exception_ptr(
          NetworkError("await", due ? peers_.name_of(due->rank) : peers_.name_of(rank_),
                       "waiting for " + (due ? due->text : std::string("a map")), "deadline passed",
                       std::chrono::duration<double>(allowed).count(), Exit::timed_out));
    if (trouble) {
      fail(trouble);
      continue;
    }
    mind_turns();
    name_stragglers();
    if (due && stragglers_.due(Clock::now() - begin))
      stragglers_.tell("waits for " + peers_.name_of(due->rank) + ": " + due->text + "; " +
                       progress_.text(due->rank));
  }
  const std::int64_t to = clock_ns();
  ledger_.waited({from, to}, step_ + 1);
  if (spec_.trace_steps > 0) {
    TraceEvent event;
    event.kind = TraceEvent::Kind::wait;
    event.frame = FrameKind::map;
    event.step = step_;
    event.from = from;
    event.to = to;
    trace_.add(event);
  }
  peers_.check();
}

}  // namespace duplex::net
