#include "tools/simulation/factors.h"

#include <algorithm>
#include <utility>

#include "core/factors/outer_products.h"

namespace duplex::tools::simulation {

namespace {

/// Returns the bytes of the frames of a worker's factors of a layer.
double piece_bytes(const Spec& spec, std::size_t layer, int worker) {
  double bytes = 0.0;
  for (const net::Chunk& piece : spec.factors->pieces(layer, worker))
    bytes += static_cast<double>(net::frame_bytes(
        spec.protection(),
        net::expected_bytes(spec.wire.gradients, net::Values::gradient, piece.count, spec.packed)));
  return bytes;
}

}  // namespace

double factor_bytes(const Spec& spec, int worker) {
  double bytes = 0.0;
  if (!spec.factors) return bytes;
  for (std::size_t layer = 0; layer < spec.factors->layers().size(); ++layer)
    bytes += piece_bytes(spec, layer, worker);
  return bytes;
}

double factor_bytes_of(const Spec& spec, int worker) {
  const net::FactorMap& map = *spec.factors;
  double bytes = 0.0;
  for (std::size_t layer = 0; layer < map.layers().size(); ++layer) {
    if (!map.trains(worker, layer)) continue;
    double others = 0.0;
    for (std::size_t each = 0; each < map.workers(); ++each)
      if (static_cast<int>(each) != worker && map.trains(static_cast<int>(each), layer)) {
        others += 1.0;
        bytes += piece_bytes(spec, layer, static_cast<int>(each));
      }
    bytes += others * piece_bytes(spec, layer, worker);
  }
  return bytes;
}

Factors::Factors(const Spec& spec, const net::ShardMap& map, EventQueue& event_queue,
                 Processors& processors, Wire& wire, Recorder* recorder,
                 std::function<void(int worker, std::size_t layer)> updated)
    : spec_(spec),
      map_(map),
      event_queue_(event_queue),
      processors_(processors),
      wire_(wire),
      recorder_(recorder),
      updated_(std::move(updated)) {
  if (!spec.factors) return;
  workers_.resize(spec.topology.workers().size());
  for (Worker& worker : workers_) {
    worker.layers.resize(spec.factors->layers().size());
    for (std::size_t layer = 0; layer < worker.layers.size(); ++layer)
      for (std::size_t& missing : worker.layers[layer].missing) missing = pieces(layer);
  }
}

/// Pieces of all workers' factors of a layer.
std::size_t Factors::pieces(std::size_t layer) const {
  std::size_t all = 0;
  for (std::size_t worker = 0; worker < spec_.factors->workers(); ++worker)
    all += spec_.factors->pieces(layer, static_cast<int>(worker)).size();
  return all;
}

void Factors::push(int worker, std::size_t layer, std::uint64_t step) {
  const std::vector<int> ranks = spec_.topology.workers();
  const int own = ranks[static_cast<std::size_t>(worker)];
  const std::vector<net::Chunk>& own_pieces = spec_.factors->pieces(layer, worker);
  constexpr std::size_t priority = 0;  // See FactorExchange::push().
  for (const net::Chunk& piece : own_pieces)
    for (const int rank : ranks)
      if (rank != own && spec_.factors->trains(spec_.topology.worker_number(rank), layer))
        wire_.send(net::FrameKind::factors, own, rank, piece, step, priority, spec_.wire.gradients);
  came(worker, layer, step, own_pieces.size());
}

void Factors::received(int, int to, const net::FrameHeader& header) {
  came(spec_.topology.worker_number(to), *spec_.factors->layer_of(header.parameter), header.step,
       1);
}

void Factors::came(int worker, std::size_t layer, std::uint64_t step, std::size_t pieces) {
  workers_[static_cast<std::size_t>(worker)].layers[layer].missing[step % 2] -= pieces;
  advance(worker);
}

/// Begins the next update, of the first layer that is complete.
void Factors::advance(int number) {
  Worker& worker = workers_[static_cast<std::size_t>(number)];
  if (worker.updating != none) return;
  const auto ready =
      std::find_if(worker.layers.begin(), worker.layers.end(), [&](const Layer& each) {
        const auto layer = static_cast<std::size_t>(&each - worker.layers.data());
        return spec_.factors->trains(number, layer) && each.missing[each.step % 2] == 0;
      });
  if (ready == worker.layers.end()) return;
  worker.updating = static_cast<std::size_t>(ready - worker.layers.begin());
  double takes = 0.0;
  if (spec_.factor_rate > 0.0) {
    const net::FactoredLayer& shape = spec_.factors->layers()[worker.updating];
    takes = OuterProducts(shape.outputs, shape.inputs)
                .flop(spec_.factors->all_samples(worker.updating)) /
            spec_.factor_rate;
  }
  worker.since = event_queue_.now();
  const double threads = spec_.threads * spec_.slots_of(static_cast<std::size_t>(number));
  processors_.take(spec_.topology.workers()[static_cast<std::size_t>(number)], threads * takes);
  event_queue_.put(event_queue_.now() + takes, EventQueue::Kind::factors,
                   static_cast<std::uint32_t>(number));
}

/// See ParameterExchange::send_last_weights().
void Factors::send_last_weights(int rank, const net::FactoredLayer& layer) {
  const int coordinator = spec_.topology.coordinator();
  for (const std::size_t p : {layer.weights, layer.bias})
    for (std::size_t i = map_.first(p); i < map_.first(p + 1); ++i)
      if (map_[i].owner == rank && !map_.trains(coordinator, p))
        wire_.send(net::FrameKind::weights, rank, coordinator, map_[i], spec_.steps,
                   map_[i].position, net::Coding::float32);
}

void Factors::worked(int number) {
  Worker& worker = workers_[static_cast<std::size_t>(number)];
  const std::size_t layer = std::exchange(worker.updating, none);
  Layer& done = worker.layers[layer];
  const int rank = spec_.topology.workers()[static_cast<std::size_t>(number)];
  if (recorder_ != nullptr && recorder_->traces(rank)) {
    net::TraceEvent event;
    event.kind = net::TraceEvent::Kind::update;
    event.parameter = static_cast<std::uint32_t>(spec_.factors->layers()[layer].weights);
    event.step = done.step;
    event.from = nanoseconds(worker.since);
    event.to = nanoseconds(event_queue_.now());
    recorder_->event(rank, event);
  }
  done.missing[done.step % 2] = pieces(layer);
  ++done.step;
  last_ = event_queue_.now();
  if (done.step == spec_.steps) send_last_weights(rank, spec_.factors->layers()[layer]);
  updated_(number, layer);
  advance(number);
}

}  // namespace duplex::tools::simulation
