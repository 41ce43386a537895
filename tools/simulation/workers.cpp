#include "tools/simulation/workers.h"

#include <algorithm>

namespace duplex::tools::simulation {

using Kind = net::TraceEvent::Kind;

Workers::Workers(const Spec& spec, const net::ShardMap& map, EventQueue& event_queue,
                 Processors& processors, Wire& wire, Recorder* recorder)
    : spec_(spec),
      map_(map),
      event_queue_(event_queue),
      processors_(processors),
      wire_(wire),
      recorder_(recorder) {
  if (spec.cut) return;
  for (const int rank : spec.topology.workers()) {
    Worker worker;
    worker.rank = rank;
    for (std::size_t p = 0; p < map.parameters(); ++p)
      worker.missing.push_back(static_cast<std::uint32_t>(map.first(p + 1) - map.first(p)));
    worker.all_missing = map.chunks();
    worker.sealing_factor = sealing_factor(rank, spec.part[workers_.size()]);
    workers_.push_back(std::move(worker));
  }
}

/// The factor by which sealing what a worker sends, and opening what it receives, makes its
/// computing take longer. `part`: of a batch.
double Workers::sealing_factor(int rank, double part) const {
  double computing = 0.0, bytes = 0.0;
  for (const Layer& layer : spec_.layers) computing += part * (layer.forward + layer.backward);
  if (spec_.seal_rate <= 0.0 || computing <= 0.0) return 1.0;
  const auto others = static_cast<double>(spec_.topology.workers().size() - 1);
  const net::WireFormat wire = net::wire_of(spec_.wire, spec_.sync);
  // A worker receives about as many bytes of factors from each other as it sends it.
  bytes += 2.0 * others * factor_bytes(spec_, spec_.topology.worker_number(rank));
  for (std::size_t i = 0; i < map_.chunks(); ++i) {
    if (spec_.factors && spec_.factors->layer_of(map_[i].parameter)) continue;
    for (const auto& [coding, what] : {std::pair(wire.weights, net::Values::weights),
                                       std::pair(wire.gradients, net::Values::gradient)})
      bytes +=
          (map_[i].owner == rank ? others : 1.0) *
          static_cast<double>(net::frame_bytes(
              spec_.protection(), net::expected_bytes(coding, what, map_[i].count, spec_.packed)));
  }
  if (spec_.average > 0) bytes /= static_cast<double>(spec_.average);
  return 1.0 + bytes / spec_.seal_rate / computing;
}

void Workers::begin() {
  for (std::size_t worker = 0; worker < workers_.size(); ++worker)
    event_queue_.put(0.0, EventQueue::Kind::worker, static_cast<std::uint32_t>(worker));
}

/// With averaging, weights come at the beginning of a round of batches and leave at its end.
bool Workers::awaits(const Worker& worker) const {
  return spec_.average == 0 || worker.step % spec_.average == 0;
}

bool Workers::pushes(const Worker& worker) const {
  return spec_.average == 0 || (worker.step + 1) % spec_.average == 0 ||
         worker.step + 1 == spec_.steps;
}

/// The step as the wire counts it.
std::uint64_t Workers::round(const Worker& worker) const {
  return spec_.average == 0 ? worker.step : worker.step / spec_.average;
}

/// The step, as the wire counts it, whose weights it awaits.
std::uint64_t Workers::awaited_step(const Worker& worker) const {
  if (spec_.average > 0) return (worker.step + spec_.average - 1) / spec_.average;
  return worker.phase == Phase::part ? worker.step + 1 : worker.step;
}

/// The worker computes until then; go_on() will be called.
void Workers::compute_until(int number, double time) {
  processors_.compute(workers_[static_cast<std::size_t>(number)].rank, true);
  event_queue_.put(time, EventQueue::Kind::worker, static_cast<std::uint32_t>(number));
}

/// The worker has computed its layers, but for the time that others took from its processors.
/// Returns whether it makes up for that now; go_on() will be called.
bool Workers::owes(int number) {
  Worker& worker = workers_[static_cast<std::size_t>(number)];
  processors_.compute(worker.rank, false);
  const double owed = processors_.owed(worker.rank);
  if (owed <= 0.0) return false;
  worker.times.computing += owed;
  compute_until(number, event_queue_.now() + owed);
  return true;
}

void Workers::go_on(int number) {
  Worker& worker = workers_[static_cast<std::size_t>(number)];
  if (worker.phase == Phase::ended || owes(number)) return;
  for (;;) {
    switch (worker.phase) {
      case Phase::begin:
        begin_step(worker);
        break;
      case Phase::await:
        if (!await(worker, all)) return;
        worker.phase = Phase::forward;
        break;
      case Phase::forward:
        if (!forward(number)) return;
        worker.phase = Phase::backward;
        break;
      case Phase::backward:
        if (!backward(number)) return;
        worker.phase = Phase::sums;
        break;
      case Phase::sums:
        if (!worker.sums.empty()) return;
        end_step(worker);
        break;
      case Phase::finish:
        if (!await(worker, all)) return;
        part(number);
        break;
      case Phase::idle:
        return;
      case Phase::part:
        if (!await(worker, all)) return;
        worker.phase = Phase::ended;
        ++ended_;
        break;
      case Phase::ended:
        return;
    }
  }
}

void Workers::begin_step(Worker& worker) {
  worker.times = {};
  worker.times.begin = worker.steps.empty() ? 0.0 : worker.steps.back().end;
  worker.slowdown =
      worker.sealing_factor *
      (spec_.straggler_factor ? spec_.straggler_factor(worker.rank, worker.step) : 1.0);
  if (!spec_.reading.empty()) {
    const auto number = static_cast<std::size_t>(&worker - workers_.data());
    double computing = 0.0;
    for (const Layer& layer : spec_.layers) computing += layer.forward + layer.backward;
    processors_.read(worker.rank, spec_.reading[number],
                     computing * spec_.part[number] * worker.slowdown);
  }
  worker.layer = 0;
  worker.phase = spec_.overlap ? Phase::forward : Phase::await;
}

/// Runs forward from `layer` on, as far as there are weights. False: go_on() is to be called again.
bool Workers::forward(int number) {
  Worker& worker = workers_[static_cast<std::size_t>(number)];
  const double part = spec_.part[static_cast<std::size_t>(number)] * worker.slowdown;
  double time = event_queue_.now();
  for (; worker.layer < spec_.layers.size(); ++worker.layer) {
    const Layer& layer = spec_.layers[worker.layer];
    if (awaits(worker)) {
      for (const std::uint32_t parameter : layer.parameters) {
        if (has(worker, parameter)) continue;
        if (time <= event_queue_.now()) {
          await(worker, parameter);
          return false;
        }
        compute_until(number, time);
        return false;
      }
    }
    const double takes = layer.forward * part;
    if (awaits(worker)) {
      time += layer.upload;
      worker.times.awaiting += layer.upload;
    }
    if (takes > 0.0) note(worker, Kind::forward, worker.layer, time, time + takes);
    time += takes;
    worker.times.computing += takes;
  }
  if (time <= event_queue_.now()) return true;
  compute_until(number, time);
  return false;
}

/// Runs backward from the layer before `layer` down; gradients leave as they are ready, or all at
/// the end.
bool Workers::backward(int number) {
  Worker& worker = workers_[static_cast<std::size_t>(number)];
  const double part = spec_.part[static_cast<std::size_t>(number)] * worker.slowdown;
  const bool pushing = pushes(worker);
  double time = event_queue_.now();
  const auto later = [&] {
    if (time <= event_queue_.now()) return false;
    compute_until(number, time);
    return true;
  };
  // When backward() is called again, layer `layer` of the worker has just ended, and its gradients
  // are due.
  const auto push_of = [&](std::size_t layer) {
    for (const std::uint32_t parameter : spec_.layers[layer].parameters) push(number, parameter);
  };
  if (pushing && spec_.overlap && worker.layer < spec_.layers.size()) push_of(worker.layer);
  while (worker.layer > 0) {
    const Layer& layer = spec_.layers[--worker.layer];
    const double takes = layer.backward * part;
    if (takes > 0.0) note(worker, Kind::backward, worker.layer, time, time + takes);
    time += takes;
    worker.times.computing += takes;
    if (pushing) time += layer.download;
    if (!pushing || !spec_.overlap || layer.parameters.empty()) continue;
    if (later()) return false;
    push_of(worker.layer);
  }
  if (later()) return false;
  if (pushing && !spec_.overlap)
    for (std::size_t p = 0; p < map_.parameters(); ++p) push(number, p);
  return true;
}

void Workers::end_step(Worker& worker) {
  worker.times.end = event_queue_.now();
  if (worker.step < spec_.steps) worker.steps.push_back(worker.times);
  ++worker.step;
  worker.phase = worker.step == spec_.steps + worker.leased ? Phase::finish : Phase::begin;
}

bool Workers::has(const Worker& worker, std::size_t parameter) const {
  return parameter == all ? worker.all_missing == 0 : worker.missing[parameter] == 0;
}

/// Returns false if they are not here yet; go_on() will be called when they are.
bool Workers::await(Worker& worker, std::size_t parameter) {
  if (has(worker, parameter)) return true;
  worker.waits = true;
  worker.awaited = parameter;
  worker.waits_since = event_queue_.now();
  return false;
}

void Workers::weights_here(int number, std::size_t chunk) {
  Worker& worker = workers_[static_cast<std::size_t>(number)];
  if (worker.phase == Phase::ended) return;
  --worker.missing[map_[chunk].parameter];
  --worker.all_missing;
  if (!worker.waits || !has(worker, worker.awaited)) return;
  worker.waits = false;
  event_queue_.put(event_queue_.now(), EventQueue::Kind::worker,
                   static_cast<std::uint32_t>(number));
  worker.times.awaiting += event_queue_.now() - worker.waits_since;
  if (recorder_ == nullptr || !recorder_->keeps(worker.rank)) return;
  recorder_->waited(worker.rank, {nanoseconds(worker.waits_since), nanoseconds(event_queue_.now())},
                    awaited_step(worker));
  note(worker, Kind::wait, worker.awaited == all ? map_[chunk].parameter : worker.awaited,
       worker.waits_since, event_queue_.now());
}

void Workers::layer_here(int number, std::size_t layer) {
  const net::FactoredLayer& shape = spec_.factors->layers()[layer];
  for (const std::size_t p : {shape.weights, shape.bias})
    for (std::size_t i = map_.first(p); i < map_.first(p + 1); ++i) weights_here(number, i);
}

/// Processor seconds in which a worker's slots add up a gradient (SlotSums). Factors are not added
/// up.
double Workers::summing(std::size_t number, std::size_t parameter) const {
  const int slots = spec_.slots_of(number);
  if (slots == 1 || spec_.owner_rate <= 0.0 ||
      (spec_.factors && spec_.factors->layer_of(parameter)))
    return 0.0;
  const double bytes = static_cast<double>(spec_.counts[parameter] * sizeof(float));
  return (slots - 1) * bytes / spec_.owner_rate;
}

void Workers::push(int number, std::size_t parameter) {
  Worker& worker = workers_[static_cast<std::size_t>(number)];
  const double takes = summing(static_cast<std::size_t>(number), parameter);
  if (takes <= 0.0 && worker.sums.empty()) return push_sum(number, parameter);
  worker.sums.push_back(parameter);
  constexpr int most_threads = 4;
  worker.sums_until =
      std::max(worker.sums_until, event_queue_.now()) +
      takes / std::min(spec_.slots_of(static_cast<std::size_t>(number)), most_threads);
  processors_.take(worker.rank, takes);
  event_queue_.put(worker.sums_until, EventQueue::Kind::sums, static_cast<std::uint32_t>(number));
}

void Workers::summed(int number) {
  Worker& worker = workers_[static_cast<std::size_t>(number)];
  if (worker.phase == Phase::ended) return;
  const std::size_t parameter = worker.sums.front();
  worker.sums.pop_front();
  push_sum(number, parameter);
  if (worker.phase == Phase::sums && worker.sums.empty())
    event_queue_.put(event_queue_.now(), EventQueue::Kind::worker,
                     static_cast<std::uint32_t>(number));
}

/// Hands over the gradient of all slots.
void Workers::push_sum(int number, std::size_t parameter) {
  Worker& worker = workers_[static_cast<std::size_t>(number)];
  if (spec_.factors && spec_.factors->layer_of(parameter)) {
    const std::size_t layer = spec_.factors->layer_of(parameter).value();
    const net::FactoredLayer& shape = spec_.factors->layers()[layer];
    if (parameter == shape.bias) return;  // It goes with the weights.
    for (const std::size_t p : {shape.weights, shape.bias}) {
      const std::size_t chunks = map_.first(p + 1) - map_.first(p);
      worker.missing[p] += static_cast<std::uint32_t>(chunks);
      worker.all_missing += chunks;
    }
    note(worker, Kind::pushed, parameter, event_queue_.now(), event_queue_.now());
    factors_->push(number, layer, round(worker));
    return;
  }
  for (std::size_t i = map_.first(parameter); i < map_.first(parameter + 1); ++i) {
    const net::Chunk& chunk = map_[i];
    ++worker.missing[parameter];
    ++worker.all_missing;
    if (chunk.owner == worker.rank) {
      note(worker, Kind::pushed, parameter, event_queue_.now(), event_queue_.now(), chunk.number);
      servers_->received(i, number, round(worker));
    } else {
      wire_.send(net::FrameKind::gradient, worker.rank, chunk.owner, chunk, round(worker),
                 chunk.position, spec_.wire.gradients);
    }
  }
}

/// In an asynchronous run, tells the owners that this worker pushes no more.
void Workers::part(int number) {
  Worker& worker = workers_[static_cast<std::size_t>(number)];
  worker.phase = Phase::part;
  if (spec_.sync != net::Sync::none) return;
  if (spec_.topology.mode == net::ServerMode::central)
    worker.phase = Phase::idle;
  else
    expect_all(worker);
  for (int owner = 0; owner < spec_.topology.size; ++owner) {
    if (!spec_.topology.is_owner(owner)) continue;
    if (owner == worker.rank)
      servers_->done(owner, number, false);
    else if (wire_.connected(worker.rank, owner))
      wire_.done(worker.rank, owner);
  }
}

/// Weights of every chunk are due once more.
void Workers::expect_all(Worker& worker) {
  for (std::size_t p = 0; p < worker.missing.size(); ++p)
    worker.missing[p] = static_cast<std::uint32_t>(map_.first(p + 1) - map_.first(p));
  worker.all_missing = map_.chunks();
}

void Workers::leased(int number, std::uint64_t batches) {
  Worker& worker = workers_[static_cast<std::size_t>(number)];
  if (worker.phase != Phase::idle) return;  // It is lost.
  if (batches == 0) expect_all(worker);
  worker.leased += batches;
  worker.phase = batches == 0 ? Phase::part : Phase::begin;
  event_queue_.put(event_queue_.now(), EventQueue::Kind::worker,
                   static_cast<std::uint32_t>(number));
}

void Workers::lose(int number) {
  Worker& worker = workers_[static_cast<std::size_t>(number)];
  if (worker.phase == Phase::ended) return;
  processors_.compute(worker.rank, false);
  processors_.owed(worker.rank);  // Nobody makes up for it any more.
  worker.phase = Phase::ended;
  ++ended_;
}

void Workers::note(const Worker& worker, Kind kind, std::size_t what, double from, double to,
                   std::uint32_t chunk) const {
  if (recorder_ == nullptr || !recorder_->traces(worker.rank)) return;
  net::TraceEvent event;
  event.kind = kind;
  event.parameter = static_cast<std::uint32_t>(what);
  event.chunk = chunk;
  event.step = kind == Kind::wait ? awaited_step(worker) : round(worker);
  event.from = nanoseconds(from);
  event.to = nanoseconds(to);
  recorder_->event(worker.rank, event);
}

}  // namespace duplex::tools::simulation
