#include "tools/simulation/parts.h"

#include <utility>

namespace duplex::tools::simulation {

using Work = PartSchedule::Work;

Parts::Parts(const Spec& spec, const net::ShardMap& map, EventQueue& event_queue,
             Processors& processors, Wire& wire, Recorder* recorder)
    : spec_(spec),
      map_(map),
      event_queue_(event_queue),
      processors_(processors),
      wire_(wire),
      recorder_(recorder) {
  if (!spec.cut) return;
  for (int number = 0; number < spec.topology.size; ++number) {
    Rank rank(spec.cut->parts[at(number)].schedule);
    rank.missing.assign(map.parameters(), 0);
    for (std::size_t p = 0; p < map.parameters(); ++p) {
      const std::size_t chunks = map.first(p + 1) - map.first(p);
      if (map.trains(number, p)) {
        rank.missing[p] = static_cast<std::uint32_t>(chunks);
        rank.all_missing += chunks;
      } else if (number == spec.topology.coordinator()) {
        rank.others_missing += chunks;
      }
    }
    rank.come.assign(2 * spec.cut->routes.size(), 0);
    rank.sealing_factor = sealing_factor(number);
    ranks_.push_back(std::move(rank));
  }
}

/// The factor by which sealing what a rank sends, and opening what it receives, makes its computing
/// take longer.
double Parts::sealing_factor(int number) const {
  double computing = 0.0, bytes = 0.0;
  for (const PartLayer& layer : spec_.cut->parts[at(number)].layers)
    computing += step_seconds(layer, spec_.cut->micro_batches);
  if (spec_.seal_rate <= 0.0 || computing <= 0.0) return 1.0;
  const auto on_wire = [&](net::Coding coding, net::Values what, std::size_t count) {
    return static_cast<double>(net::frame_bytes(
        spec_.protection(), net::expected_bytes(coding, what, count, spec_.packed)));
  };
  for (std::size_t i = 0; i < map_.chunks(); ++i) {
    const net::Chunk& chunk = map_[i];
    if (!map_.trains(number, chunk.parameter)) continue;
    if (spec_.factors && spec_.factors->layer_of(chunk.parameter)) continue;
    const double others = static_cast<double>(map_.members(chunk.parameter)->size() - 1);
    bytes += (chunk.owner == number ? others : 1.0) *
             (on_wire(spec_.wire.weights, net::Values::weights, chunk.count) +
              on_wire(spec_.wire.gradients, net::Values::gradient, chunk.count));
  }
  if (spec_.factors) bytes += factor_bytes_of(spec_, number);
  for (const net::MapRoute& route : spec_.cut->routes)
    if (route.from == number || route.to == number)
      bytes += (route.gradient ? 2.0 : 1.0) * static_cast<double>(spec_.cut->micro_batches) *
               on_wire(net::Coding::float32, net::Values::gradient, route.elements);
  return 1.0 + bytes / spec_.seal_rate / computing;
}

void Parts::begin() {
  for (int number = 0; at(number) < ranks_.size(); ++number) wake(number);
}

void Parts::wake(int number) {
  event_queue_.put(event_queue_.now(), EventQueue::Kind::worker,
                   static_cast<std::uint32_t>(number));
}

void Parts::compute_until(int number, double time) {
  processors_.compute(number, true);
  ranks_[at(number)].computes_until = time;
  event_queue_.put(time, EventQueue::Kind::worker, static_cast<std::uint32_t>(number));
}

/// The rank has computed, but for the time that others took from its processors. Returns whether
/// it makes up for that now.
bool Parts::owes(int number) {
  processors_.compute(number, false);
  const double owed = processors_.owed(number);
  if (owed <= 0.0) return false;
  ranks_[at(number)].times.computing += owed;
  compute_until(number, event_queue_.now() + owed);
  return true;
}

void Parts::go_on(int number) {
  Rank& rank = ranks_[at(number)];
  if (rank.phase == Phase::ended) return;
  // A frame may have come, and woken the rank once more, before the rank went on.
  if (rank.phase == Phase::compute && event_queue_.now() < rank.computes_until) return;
  if (rank.phase == Phase::compute && owes(number)) return;
  for (;;) {
    switch (rank.phase) {
      case Phase::begin:
        begin_step(number);
        break;
      case Phase::choose:
        if (!choose(number)) return wait(rank);
        break;
      case Phase::weights:
        if (awaits_weights(number)) return wait(rank);
        waited(number);
        if (compute(number)) return;
        break;
      case Phase::compute:
        computed(number);
        break;
      case Phase::finish:
        if (rank.all_missing + rank.others_missing > 0) return wait(rank);
        waited(number);
        rank.phase = Phase::ended;
        ++ended_;
        break;
      case Phase::ended:
        return;
    }
  }
}

void Parts::begin_step(int number) {
  Rank& rank = ranks_[at(number)];
  rank.times = {};
  rank.times.begin = rank.steps.empty() ? 0.0 : rank.steps.back().end;
  rank.slowdown = rank.sealing_factor *
                  (spec_.straggler_factor ? spec_.straggler_factor(number, rank.step) : 1.0);
  if (!spec_.reading.empty()) {
    double computing = 0.0;
    for (const PartLayer& layer : spec_.cut->parts[at(number)].layers)
      computing += step_seconds(layer, spec_.cut->micro_batches);
    processors_.read(number, spec_.reading[at(number)], computing * rank.slowdown);
  }
  rank.schedule.begin();
  rank.phase = Phase::choose;
}

/// Finds what is run next. Returns false where maps have to come first.
bool Parts::choose(int number) {
  Rank& rank = ranks_[at(number)];
  if (rank.schedule.done()) {
    push_complete(number);
    end_step(rank);
    return true;
  }
  const std::uint64_t before = rank.step * spec_.cut->micro_batches;
  const auto work =
      rank.schedule.next([&](std::size_t transfer, bool gradient, std::uint64_t micro_batch) {
        return rank.come[2 * transfer + (gradient ? 1 : 0)] > before + micro_batch;
      });
  if (!work || !rank.schedule.comes_before_gradients(*work)) push_complete(number);
  if (!work) return false;
  waited(number);
  rank.work = *work;
  if (work->kind != Work::admit) rank.phase = Phase::weights;
  return true;
}

/// The step's weights stay as they are for all of its micro-batches.
bool Parts::awaits_weights(int number) const {
  const Rank& rank = ranks_[at(number)];
  if (rank.work.kind != Work::forward || rank.work.number > 0) return false;
  for (const std::size_t p : layer(number).awaits)
    if (rank.missing[p] > 0) return true;
  return false;
}

/// Returns whether that takes any time; go_on() will be called when it is over.
bool Parts::compute(int number) {
  Rank& rank = ranks_[at(number)];
  rank.phase = Phase::compute;
  const PartLayer& its = layer(number);
  const bool forward = rank.work.kind == Work::forward;
  const std::uint64_t number_in_step = rank.work.number;
  const double takes = (forward ? forward_seconds(its, number_in_step)
                                : backward_seconds(its, number_in_step, spec_.cut->micro_batches)) *
                       rank.slowdown;
  if (takes <= 0.0) return false;
  const double end = event_queue_.now() + takes;
  rank.times.computing += takes;
  if (its.node >= 0)
    note(number, forward ? net::TraceEvent::Kind::forward : net::TraceEvent::Kind::backward,
         static_cast<std::uint32_t>(its.node), event_queue_.now(), end);
  compute_until(number, end);
  return true;
}

/// A layer has been computed: what it gives leaves.
void Parts::computed(int number) {
  Rank& rank = ranks_[at(number)];
  const PartLayer& its = layer(number);
  rank.phase = Phase::choose;
  if (rank.work.kind == Work::forward) {
    for (const std::size_t route : its.sends) send(number, route, false);
    return;
  }
  for (const std::size_t route : its.returns) send(number, route, true);
  if (rank.work.number + 1 == spec_.cut->micro_batches)
    rank.complete.insert(rank.complete.end(), its.pushes.begin(), its.pushes.end());
}

void Parts::push_complete(int number) {
  std::vector<std::size_t>& complete = ranks_[at(number)].complete;
  for (const std::size_t p : complete) push(number, p);
  complete.clear();
}

void Parts::end_step(Rank& rank) {
  rank.times.end = event_queue_.now();
  rank.steps.push_back(rank.times);
  rank.phase = ++rank.step == spec_.steps ? Phase::finish : Phase::begin;
}

/// See MapTraffic::send().
void Parts::send(int number, std::size_t route, bool gradient) {
  const Rank& rank = ranks_[at(number)];
  const net::MapRoute& on = spec_.cut->routes[route];
  const std::uint32_t count = net::map_frames(on.elements);
  for (std::uint32_t part = 0; part < count; ++part) {
    net::Chunk chunk;
    chunk.parameter = static_cast<std::uint32_t>(route);
    chunk.number = static_cast<std::uint32_t>(rank.work.number) * count + part;
    chunk.count = net::map_frame_begin(on.elements, part + 1, count) -
                  net::map_frame_begin(on.elements, part, count);
    wire_.send(gradient ? net::FrameKind::map_gradient : net::FrameKind::map, number,
               gradient ? on.from : on.to, chunk, rank.step, 0, net::Coding::float32);
  }
}

void Parts::push(int number, std::size_t parameter) {
  Rank& rank = ranks_[at(number)];
  if (spec_.factors && spec_.factors->layer_of(parameter)) {
    const std::size_t layer = spec_.factors->layer_of(parameter).value();
    const std::size_t chunks = map_.first(parameter + 1) - map_.first(parameter);
    rank.missing[parameter] += static_cast<std::uint32_t>(chunks);
    rank.all_missing += chunks;
    // The bias goes with the weights.
    if (parameter != spec_.factors->layers()[layer].weights) return;
    note(number, net::TraceEvent::Kind::pushed, static_cast<std::uint32_t>(parameter),
         event_queue_.now(), event_queue_.now());
    factors_->push(number, layer, rank.step);
    return;
  }
  for (std::size_t i = map_.first(parameter); i < map_.first(parameter + 1); ++i) {
    const net::Chunk& chunk = map_[i];
    ++rank.missing[parameter];
    ++rank.all_missing;
    if (chunk.owner == number) {
      note(number, net::TraceEvent::Kind::pushed, static_cast<std::uint32_t>(parameter),
           event_queue_.now(), event_queue_.now(), chunk.number);
      servers_->received(i, number, rank.step);
    } else {
      wire_.send(net::FrameKind::gradient, number, chunk.owner, chunk, rank.step, chunk.position,
                 spec_.wire.gradients);
    }
  }
}

void Parts::weights_here(int number, std::size_t chunk) {
  Rank& rank = ranks_[at(number)];
  const std::size_t parameter = map_[chunk].parameter;
  if (map_.trains(number, parameter)) {
    --rank.missing[parameter];
    --rank.all_missing;
  } else {
    --rank.others_missing;
  }
  if (rank.waits_since && rank.phase != Phase::choose) wake(number);
}

void Parts::layer_here(int number, std::size_t layer) {
  const net::FactoredLayer& shape = spec_.factors->layers()[layer];
  for (const std::size_t p : {shape.weights, shape.bias})
    for (std::size_t i = map_.first(p); i < map_.first(p + 1); ++i) weights_here(number, i);
}

void Parts::map_here(int number, const net::FrameHeader& header) {
  Rank& rank = ranks_[at(number)];
  const std::uint32_t count = net::map_frames(spec_.cut->routes[header.parameter].elements);
  if ((header.chunk + 1) % count != 0) return;
  ++rank.come[2 * header.parameter + (header.kind == net::FrameKind::map_gradient ? 1 : 0)];
  if (rank.waits_since && rank.phase == Phase::choose) wake(number);
}

void Parts::wait(Rank& rank) {
  if (!rank.waits_since) rank.waits_since = event_queue_.now();
}

/// The rank waits no more.
void Parts::waited(int number) {
  Rank& rank = ranks_[at(number)];
  if (!rank.waits_since) return;
  const double from = *std::exchange(rank.waits_since, std::nullopt);
  rank.times.awaiting += event_queue_.now() - from;
  if (recorder_ == nullptr || !recorder_->keeps(number)) return;
  const bool maps = rank.phase == Phase::choose;
  recorder_->waited(number, {nanoseconds(from), nanoseconds(event_queue_.now())},
                    rank.step + (maps ? 1 : 0));
  std::uint32_t parameter = 0;  // The last one that came; of maps none.
  if (rank.phase == Phase::weights)
    parameter = static_cast<std::uint32_t>(layer(number).awaits.back());
  note(number, net::TraceEvent::Kind::wait, parameter, from, event_queue_.now(), 0,
       maps ? net::FrameKind::map : net::FrameKind::weights);
}

void Parts::note(int number, net::TraceEvent::Kind kind, std::uint32_t what, double from, double to,
                 std::uint32_t chunk, net::FrameKind frame) const {
  if (recorder_ == nullptr || !recorder_->traces(number)) return;
  net::TraceEvent event;
  event.kind = kind;
  event.frame = frame;
  event.parameter = what;
  event.chunk = chunk;
  event.step = ranks_[at(number)].step;
  event.from = nanoseconds(from);
  event.to = nanoseconds(to);
  recorder_->event(number, event);
}

}  // namespace duplex::tools::simulation
