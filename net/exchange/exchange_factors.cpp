// The part of an exchange that concerns layers whose gradients are exchanged as factors.
//
// Their chunks have owners as all others: an owner sends the first weights, and its part of
// checkpoints has them. What an owner has of the optimiser's state after a checkpoint, every rank
// needs, since every rank updates; it follows the first weights as frames of weights whose
// parameter is the chunk's plus the number of all parameters, once for each array of the state.
#include <algorithm>
#include <utility>

#include "core/error.h"
#include "net/exchange/exchange.h"

namespace duplex::net {

/// Throws Error where the run cannot have such layers.
void ParameterExchange::require_factors() const {
  bool fits = topology_.mode == ServerMode::distributed && !is_async() && !spec_.average &&
              !spec_.semaphore;
  for (const FactoredLayer& layer : spec_.factored) {
    fits = fits && layer.samples.size() == topology_.workers().size();
    for (std::size_t worker = 0; fits && worker < layer.samples.size(); ++worker)
      for (const std::size_t p : {layer.weights, layer.bias})
        fits = fits && (layer.samples[worker] > 0) == map_.trains(static_cast<int>(worker), p);
  }
  if (!fits)
    throw Error(
        "factors are for synchronous runs without a central server, averaging and "
        "semaphores, and for layers of which every worker that trains with them has samples",
        Exit::usage);
}

FactorStoreSpec ParameterExchange::factor_spec() {
  FactorStoreSpec store;
  store.own = topology_.worker_number(rank_);
  store.mean = spec_.mean;
  store.micro_batches = spec_.micro_batches;
  store.optimiser = spec_.optimiser;
  store.rate = spec_.rate;
  store.first_step = spec_.first_step;
  store.threads = spec_.factor_threads;
  for (std::size_t i = 0; spec_.keeps_before && i < map_.chunks(); ++i)
    for (const FactoredLayer& layer : spec_.factored)
      if (map_[i].owner == rank_ &&
          (map_[i].parameter == layer.weights || map_[i].parameter == layer.bias))
        store.kept.push_back(map_[i]);
  store.replayed_flops = spec_.replayed_flops;
  store.updated = [this](std::size_t layer, std::uint64_t step, std::int64_t from,
                         std::int64_t to) {
    const FactoredLayer& shape = factors_->map().layers()[layer];
    if (spec_.trace_steps > 0) {
      TraceEvent event;
      event.kind = TraceEvent::Kind::update;
      event.parameter = static_cast<std::uint32_t>(shape.weights);
      event.step = step - 1;
      event.from = from;
      event.to = to;
      trace_.add(event);
    }
    // They leave first: this rank may say goodbye as soon as the last chunk is committed.
    if (server_ && server_->ends_at(step))
      for (const std::size_t p : {shape.weights, shape.bias}) send_last_weights(p, step);
    for (const std::size_t p : {shape.weights, shape.bias})
      for (std::size_t i = map_.first(p); i < map_.first(p + 1); ++i) incoming_.commit(i);
    last_weights_ns_ = clock_ns();
    progress_.made();
  };
  store.failed = [this](const std::exception_ptr& cause) { fail(cause); };
  return store;
}

/// The coordinator updates nothing that it does not train with, and is sent the last weights of it.
void ParameterExchange::send_last_weights(std::size_t p, std::uint64_t step) {
  if (map_.trains(topology_.coordinator(), p)) return;
  Connection& connection = *peers_.connection(topology_.coordinator());
  for (std::size_t i = map_.first(p); i < map_.first(p + 1); ++i)
    if (map_[i].owner == rank_)
      connection.send(FrameKind::weights, map_[i], step, spans_[p].weights + map_[i].offset,
                      map_[i].position);
}

/// Weights of factored layers come from their owners for the first step alone, and the last ones to
/// a coordinator that does not train with them.
bool ParameterExchange::comes_from_owners(std::size_t p) const {
  return !is_factored(p) || !map_.trains(rank_, p) ||
         incoming_.due_step(map_.first(p)) == spec_.first_step;
}

/// With the weights, both parameters of the layer are updated.
bool ParameterExchange::expect_update(std::size_t p) {
  const std::size_t layer = factors_->map().layer_of(p).value();
  const FactoredLayer& shape = factors_->map().layers()[layer];
  if (p == shape.bias) return true;
  return incoming_.expect_after_gradient(shape.bias, step_ + 1, 0) &&
         incoming_.expect_after_gradient(p, step_ + 1, factors_->frames(layer));
}

/// The factors go with the weights.
void ParameterExchange::push_factors(std::size_t p) {
  const std::size_t layer = factors_->map().layer_of(p).value();
  if (factors_->map().layers()[layer].weights != p) return;
  const std::int64_t now = clock_ns();
  if (spec_.trace_steps > 0)
    note(TraceEvent::Kind::pushed, step_, static_cast<std::uint32_t>(p), 0, now, now);
  factors_->push(layer, step_);
}

void ParameterExchange::expect_initial_state() {
  const auto states = static_cast<std::size_t>(spec_.optimiser.states());
  if (spec_.first_step == 0 || states == 0) return;
  for (std::size_t i = 0; i < map_.chunks(); ++i) {
    const Chunk& chunk = map_[i];
    if (!is_factored(chunk.parameter) || !map_.trains(rank_, chunk.parameter)) continue;
    if (chunk.owner != rank_) {
      incoming_.expect_more(chunk.parameter, states);
      for (std::size_t number = 1; number <= states; ++number) state_due_.insert({i, number});
      continue;
    }
    std::vector<float*> state = factors_->store().state(chunk.parameter);
    for (float*& each : state) each += chunk.offset;
    if (spec_.initial_state) spec_.initial_state(i, state);
  }
}

void ParameterExchange::send_initial_state() {
  if (spec_.first_step == 0) return;
  for (std::size_t i = 0; i < map_.chunks(); ++i) {
    Chunk chunk = map_[i];
    if (chunk.owner != rank_ || !factors_->map().layer_of(chunk.parameter)) continue;
    const std::size_t p = chunk.parameter;
    for (float* each : factors_->store().state(p)) {
      chunk.parameter += static_cast<std::uint32_t>(spans_.size());
      peers_.for_each([&](Connection& connection) {
        if (!map_.trains(connection.peer(), p)) return;
        connection.send(FrameKind::weights, chunk, spec_.first_step, each + chunk.offset,
                        chunk.position);
      });
    }
  }
}

/// Throws ProtocolError where the header is none of an optimiser's first state that is due.
Reservation ParameterExchange::reserve_state(int peer, const FrameHeader& header) {
  const std::size_t number = header.parameter / spans_.size();
  const Chunk* const chunk =
      map_.find(header.parameter % static_cast<std::uint32_t>(spans_.size()), header.chunk);
  const std::lock_guard<std::mutex> lock(state_mutex_);
  if (chunk == nullptr || chunk->owner != peer || header.step != spec_.first_step ||
      header.coding != Coding::float32 || header.length != chunk->bytes() ||
      state_due_.erase({chunk->index, number}) == 0)
    throw ProtocolError("state of parameter " + std::to_string(header.parameter) + ", chunk " +
                        std::to_string(header.chunk) + ", is not due");
  Reservation reservation;
  reservation.to = factors_->store().state(chunk->parameter)[number - 1] + chunk->offset;
  reservation.count = chunk->count;
  reservation.chunk = chunk->index;
  reservation.state = true;
  return reservation;
}

std::optional<std::uint64_t> ParameterExchange::step_of_weights(std::size_t chunk) const {
  const std::optional<std::uint64_t> here = incoming_.step_here(chunk);
  const std::size_t p = map_[chunk].parameter;
  if (!here || !is_factored(p)) return here;
  return factors_->store().sound_step_of(factors_->map().layer_of(p).value());
}

std::uint64_t ParameterExchange::step_of(std::size_t chunk) const {
  const std::size_t p = map_[chunk].parameter;
  return is_factored(p) ? factors_->store().step_of(factors_->map().layer_of(p).value())
                        : store_->step_of(chunk);
}

std::optional<ChunkState> ParameterExchange::state_of(std::size_t chunk, std::uint64_t step) const {
  if (is_factored(map_[chunk].parameter)) return factors_->store().state_of(map_[chunk], step);
  return store_->state(chunk, step);
}

}  // namespace duplex::net
