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

void ParameterExchange::check_wait(int rank, const std::string& what, Deadline begin) {
  if (is_overdue(begin)) fail(overdue(rank, what));
  peers_.check();
}

void ParameterExchange::wait_for_maps(std::uint64_t known) {
  peers_.check();
  const std::int64_t from = clock_ns();
  const Deadline begin = Clock::now();
  while (!maps_->wait(known, look_every) && !peers_.failed()) {
    ledger_.flush();
    std::exception_ptr trouble = server_ ? server_->trouble() : nullptr;
    const auto due = maps_->due();
    const bool parted = due && peers_.parted(due->rank);
    if (!trouble && parted && maps_->arrivals() == known)
      trouble = std::make_exception_ptr(peers_.left_early(due->rank));
    if (!trouble && is_overdue(begin))
      trouble = overdue(due ? due->rank : rank_, due ? due->text : "a map");
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
