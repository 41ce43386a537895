#include "net/exchange/parameter_server.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>

#include "core/error.h"
#include "net/connection/receive_window.h"

namespace duplex::net {

ParameterServer::ParameterServer(const ExchangeContext& context, IncomingWeights* incoming,
                                 const FactorMap* factored)
    : context_(context),
      incoming_(incoming),
      factored_(factored),
      workers_(context.topology.workers()),
      head_start_(head_start(context.map.elements(), context.spec.overlap)),
      used_turn_(workers_.size()),
      gradients_turn_(
          [this](int rank) {
            used_turn_[static_cast<std::size_t>(worker_of(rank))] = clock_ns();
            context_.peers.connection(rank)->grant();
          },
          [](int) {}),
      weights_turn_([this](int rank) { context_.peers.connection(rank)->grant_weights(); },
                    [this](int rank) { context_.peers.connection(rank)->want_weights_turn(); }),
      marks_(static_cast<int>(workers_.size()), context.spec.last_checkpoint) {
  for (int rank = 0; rank < context.topology.size; ++rank)
    numbers_.push_back(context.topology.worker_number(rank));
  std::vector<float*> weights;
  for (const Span& span : context.spans) weights.push_back(span.weights);
  store_ = make_store(context.map, context.rank, store_spec(), weights,
                      [this](const Publication& publication) { publish(publication); });
  if (context.spec.sync != Sync::none || incoming_ != nullptr) return;
  std::vector<StepRange> own;
  for (std::size_t worker = 0; worker < workers_.size(); ++worker) {
    const auto at = [&](const std::vector<std::uint64_t>& steps, std::uint64_t other) {
      return worker < steps.size() ? steps[worker] : other;
    };
    own.push_back({at(context.spec.first_steps, 0), at(context.spec.ends, BatchPool::to_its_end)});
  }
  pool_.emplace(
      own, [this](int worker, const StepRange& steps) { return store_->undone(worker, steps); },
      context.spec.steps);
}

StoreSpec ParameterServer::store_spec() {
  const ExchangeSpec& spec = context_.spec;
  const bool trains = incoming_ != nullptr;
  StoreSpec store;
  store.sync = spec.sync;
  store.workers = static_cast<int>(workers_.size());
  store.own = worker_of(context_.rank);
  store.readers = store.workers - (trains ? 1 : 0);
  store.mean = spec.mean;
  store.average = spec.average;
  store.publish_together = !spec.overlap;
  store.optimiser = spec.optimiser;
  store.rate = spec.rate;
  store.first_step = spec.first_step;
  store.first_steps = spec.first_steps;
  store.records = spec.records;
  store.staleness_before = spec.staleness_before;
  store.initial_state = spec.initial_state;
  store.keeps_before = spec.keeps_before;
  if (factored_ != nullptr)
    store.leaves = [map = factored_](std::size_t p) { return map->layer_of(p).has_value(); };
  store.packs = spec.wire.weights == Coding::lossless && store.readers > 0;
  const std::size_t owned = context_.map.elements_of(context_.rank) * sizeof(float);
  store.early_bytes = early_room_of(trains, owned, store.workers, spec.early_bytes);
  store.later = [this] {
    const auto overdue = store_->overdue(std::chrono::seconds(0));
    return overdue ? progressed(overdue->missing) + context_.spec.timeout : Deadline();
  };
  if (spec.semaphore)
    store.on_wait = [this](int worker) {
      gradients_turn_.leave(workers_[static_cast<std::size_t>(worker)]);
    };
  if (spec.trace_steps > 0) store.on_work = [this](const StoreWork& work) { note(work); };
  return store;
}

void ParameterServer::start() {
  store_->publish_initial();
  for (std::size_t i = 0; factored_ != nullptr && i < context_.map.chunks(); ++i) {
    const Chunk& chunk = context_.map[i];
    if (chunk.owner == context_.rank && factored_->layer_of(chunk.parameter))
      publish({i, context_.spec.first_step, Store::every_worker,
               context_.spans[chunk.parameter].weights + chunk.offset});
  }
  if (incoming_ != nullptr)
    own_gradients_ =
        std::make_unique<LocalGradientQueue>(*store_, worker_of(context_.rank), context_.fail);
}

Reservation ParameterServer::reserve(int peer, const Chunk& chunk, std::uint64_t step) {
  const int worker = numbers_[static_cast<std::size_t>(peer)];
  if (worker < 0) throw ProtocolError("it is no worker of this rank");
  used_turn_[static_cast<std::size_t>(worker)] = clock_ns();
  float* to = store_->reserve(chunk.index, worker, step, Clock::now() + context_.spec.timeout);
  if (to != nullptr || context_.peers.failed()) {
    Reservation reservation;
    reservation.to = to;
    reservation.count = chunk.count;
    reservation.chunk = chunk.index;
    reservation.worker = worker;
    return reservation;
  }
  if (const auto overdue = store_->overdue(std::chrono::seconds(0))) throw error_of(*overdue);
  throw Error("waited too long for room for another gradient", Exit::timed_out);
}

void ParameterServer::submit(std::size_t chunk, std::uint64_t step, const float* gradient) {
  own_gradients_->add(chunk, step, gradient);
}

/// Sends new weights to the workers that they are for, and commits them for the one on this rank.
void ParameterServer::publish(const Publication& publication) {
  const Chunk& chunk = context_.map[publication.chunk];
  // Whoever has the last weights keeps them, as they are.
  const bool last = is_last(publication);
  // The first weights, and those of an asynchronous store, are packed against nothing.
  const Coding agreed = context_.spec.wire.weights;
  // All ranks update a factored layer from the same weights.
  const bool factored = factored_ != nullptr && factored_->layer_of(chunk.parameter);
  const Coding coding = last || factored || agreed == Coding::lossless ? Coding::float32 : agreed;
  const std::uint64_t priority = chunk.position + head_start_;
  const auto send = [&](int to) {
    Connection& connection = *context_.peers.connection(to);
    // Weights are packed against those that who trains with them has.
    if (publication.packed != nullptr && context_.map.trains(to, chunk.parameter))
      connection.send_coded(FrameKind::weights, chunk, publication.step, publication.packed,
                            publication.packed_bytes, priority, Coding::lossless);
    else
      connection.send(FrameKind::weights, chunk, publication.step, publication.weights, priority,
                      coding);
  };
  if (publication.worker != Store::every_worker) {
    const int to = workers_[static_cast<std::size_t>(publication.worker)];
    if (to != context_.rank) {
      if (!context_.peers.lost(to)) send(to);
      return;
    }
    // This rank's worker computes with a copy, since the store's weights go on changing.
    store_->read(chunk.index, publication.worker,
                 context_.spans[chunk.parameter].weights + chunk.offset);
  } else {
    for (const int to : workers_)
      if (to != context_.rank && wants(to, chunk, last)) send(to);
  }
  if (incoming_ != nullptr) incoming_->commit(chunk.index);
}

void ParameterServer::copy_weights(int peer, std::size_t chunk, float* to) {
  store_->read(chunk, worker_of(peer), to);
}

bool ParameterServer::ask_turn(int peer) {
  if (!context_.spec.semaphore || !context_.topology.is_worker(peer)) return false;
  if (!gradients_turn_.ask(peer)) return false;
  if (context_.peers.lost(peer)) gradients_turn_.leave(peer);  // done() may have run before.
  return true;
}

bool ParameterServer::release_turn(int peer) {
  if (!context_.spec.semaphore) return false;
  gradients_turn_.leave(peer);
  return true;
}

void ParameterServer::weights_turn(int peer, SendOrder::TurnRequest what) {
  switch (what) {
    case SendOrder::TurnRequest::want:
      weights_turn_.ask(peer);
      if (context_.peers.lost(peer)) weights_turn_.leave(peer);
      break;
    case SendOrder::TurnRequest::leave:
      weights_turn_.leave(peer);
      break;
    case SendOrder::TurnRequest::step_aside:
    case SendOrder::TurnRequest::step_aside_waiting:
      weights_turn_.step_aside(peer, what == SendOrder::TurnRequest::step_aside_waiting);
      break;
    case SendOrder::TurnRequest::nothing:
      break;
  }
}

std::optional<int> ParameterServer::idle_with_turn() const {
  const std::optional<int> rank = gradients_turn_.awaited();
  if (!rank) return std::nullopt;
  const std::chrono::nanoseconds idle(clock_ns() -
                                      used_turn_[static_cast<std::size_t>(worker_of(*rank))]);
  // A frame may take the timeout itself to come.
  return idle >= context_.spec.timeout + context_.spec.timeout / 10 ? rank : std::nullopt;
}

void ParameterServer::copy_own_weights() {
  for (std::size_t chunk = 0; chunk < context_.map.chunks(); ++chunk)
    store_->read(
        chunk, 0,
        context_.spans[context_.map[chunk].parameter].weights + context_.map[chunk].offset);
}

Error ParameterServer::error_of(const Store::Overdue& overdue) const {
  std::string ranks;
  for (const int worker : overdue.missing)
    ranks += (ranks.empty() ? "" : ", ") +
             context_.peers.name_of(workers_[static_cast<std::size_t>(worker)]);
  const std::string seconds = seconds_text(
      std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(overdue.seconds)));
  return Error(ranks + ": no gradient of " +
                   context_.spans[context_.map[overdue.chunk].parameter].name + " for step " +
                   std::to_string(overdue.step) + " within " + seconds,
               Exit::timed_out);
}

std::string ParameterServer::late(Clock::duration least) const {
  auto overdue = store_->overdue(least);
  if (!overdue) return "";
  std::vector<int>& missing = overdue->missing;
  missing.erase(std::remove(missing.begin(), missing.end(), worker_of(context_.rank)),
                missing.end());
  if (missing.empty()) return "";
  const int first = workers_[static_cast<std::size_t>(missing.front())];
  return error_of(*overdue).what() +
         (missing.size() == 1 ? "; " + context_.progress.text(first) : std::string());
}

std::exception_ptr ParameterServer::trouble() const {
  // Parted workers are collected before missing gradients: a gradient may come just before a
  // goodbye.
  std::vector<int> parted;
  for (const int rank : workers_)
    if (context_.peers.parted(rank)) parted.push_back(worker_of(rank));
  if (auto overdue = store_->overdue(context_.spec.timeout))
    if (Clock::now() >= progressed(overdue->missing) + context_.spec.timeout) {
      spare_who_waits(overdue->missing);
      return std::make_exception_ptr(error_of(*overdue));
    }
  if (parted.empty()) return nullptr;
  const auto open = store_->overdue(std::chrono::seconds(0));
  if (!open) return nullptr;
  for (const int worker : open->missing)
    for (const int gone : parted)
      if (worker == gone)
        return std::make_exception_ptr(
            context_.peers.left_early(workers_[static_cast<std::size_t>(worker)]));
  return nullptr;
}

/// A worker that waits for its turn is not to blame, unless all do.
void ParameterServer::spare_who_waits(std::vector<int>& workers) const {
  std::vector<int> others = workers;
  const auto waits = [this](int worker) {
    return gradients_turn_.waits(workers_[static_cast<std::size_t>(worker)]);
  };
  others.erase(std::remove_if(others.begin(), others.end(), waits), others.end());
  if (!others.empty()) workers = std::move(others);
}

Deadline ParameterServer::progressed(const std::vector<int>& workers) const {
  Deadline last;
  for (const int worker : workers)
    last = std::max(last, context_.progress.last(workers_[static_cast<std::size_t>(worker)]));
  return last;
}

void ParameterServer::stop() {
  if (own_gradients_) own_gradients_->close();
  store_->stop();
}

void ParameterServer::join() {
  if (own_gradients_) own_gradients_->join();
}

void ParameterServer::note(const StoreWork& work) {
  TraceEvent event;
  event.kind = work.kind == StoreWork::add ? TraceEvent::Kind::add : TraceEvent::Kind::update;
  if (work.kind == StoreWork::add || context_.spec.sync == Sync::none)
    event.peer = workers_[static_cast<std::size_t>(work.worker)];
  event.parameter = context_.map[work.chunk].parameter;
  event.chunk = context_.map[work.chunk].number;
  event.step = work.step;
  event.from = work.from;
  event.to = work.to;
  context_.trace.add(event);
}

}  // namespace duplex::net
