#include "tools/planning/step_bytes.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <tuple>
#include <vector>

#include "net/topology/shard_map.h"
#include "tools/simulation/factors.h"

namespace duplex::tools {
namespace {

/// The most that any rank sends and receives where the network is cut: maps and their gradients,
/// and of the parameters that several ranks have gradients and weights.
StepBytes bytes_of_cut(const simulation::Spec& spec) {
  const simulation::CutRun& cut = *spec.cut;
  const auto size = static_cast<std::size_t>(spec.topology.size);
  std::vector<double> out(size, 0.0), in(size, 0.0);
  const auto cross = [&](int from, int to, net::Coding coding, net::Values what,
                         std::size_t count) {
    const auto bytes = static_cast<double>(
        net::frame_bytes(spec.protection(), net::expected_bytes(coding, what, count, spec.packed)));
    out[static_cast<std::size_t>(from)] += bytes;
    in[static_cast<std::size_t>(to)] += bytes;
  };
  for (const net::MapRoute& route : cut.routes)
    for (std::uint64_t m = 0; m < cut.micro_batches; ++m) {
      cross(route.from, route.to, net::Coding::float32, net::Values::gradient, route.elements);
      if (route.gradient)
        cross(route.to, route.from, net::Coding::float32, net::Values::gradient, route.elements);
    }
  const net::ShardMap map =
      spec.topology.shard_map(spec.counts, spec.shards, spec.chunk_bytes, cut.members);
  for (std::size_t layer = 0; spec.factors && layer < spec.factors->layers().size(); ++layer)
    for (int from = 0; from < spec.topology.size; ++from)
      for (int to = 0; to < spec.topology.size; ++to)
        for (const net::Chunk& piece : spec.factors->pieces(layer, from))
          if (to != from && spec.factors->trains(to, layer))
            cross(from, to, spec.wire.gradients, net::Values::gradient, piece.count);
  for (std::size_t i = 0; i < map.chunks(); ++i)
    for (const int member : *map.members(map[i].parameter)) {
      if (member == map[i].owner) continue;
      if (spec.factors && spec.factors->layer_of(map[i].parameter)) continue;
      cross(member, map[i].owner, spec.wire.gradients, net::Values::gradient, map[i].count);
      cross(map[i].owner, member, spec.wire.weights, net::Values::weights, map[i].count);
    }
  StepBytes bytes;
  bytes.worker_out = *std::max_element(out.begin(), out.end());
  bytes.worker_in = *std::max_element(in.begin(), in.end());
  return bytes;
}

}  // namespace

StepBytes step_bytes(const Strategy& strategy, const simulation::Spec& spec) {
  if (spec.cut) return bytes_of_cut(spec);
  const net::ShardMap map = spec.topology.shard_map(spec.counts, spec.shards, spec.chunk_bytes);
  const auto size = static_cast<std::size_t>(spec.topology.size);
  // The bytes of one transfer of gradients, and of weights: by owner, and all together.
  struct Transfer {
    std::vector<double> owned;
    double all = 0.0;
  } gradients{std::vector<double>(size), 0.0}, weights = gradients;
  const net::WireFormat wire = net::wire_of(spec.wire, spec.sync);
  for (std::size_t i = 0; i < map.chunks(); ++i) {
    if (spec.factors && spec.factors->layer_of(map[i].parameter)) continue;
    for (auto [transfer, coding, what] :
         {std::tuple(&gradients, wire.gradients, net::Values::gradient),
          std::tuple(&weights, wire.weights, net::Values::weights)}) {
      const auto bytes = static_cast<double>(net::frame_bytes(
          spec.protection(), net::expected_bytes(coding, what, map[i].count, spec.packed)));
      transfer->owned[static_cast<std::size_t>(map[i].owner)] += bytes;
      transfer->all += bytes;
    }
  }
  // Gradients go to every owner, weights come from it; an owner has as many of either with each
  // worker but itself.
  const auto workers = static_cast<double>(strategy.workers());
  const double steps = static_cast<double>(std::max<std::uint64_t>(strategy.parallel.average, 1));
  StepBytes bytes;
  for (const int worker : spec.topology.workers()) {
    const auto of = [&](const Transfer& to_others, const Transfer& to_it) {
      const auto own = static_cast<std::size_t>(worker);
      return (to_others.all - to_others.owned[own] + (workers - 1.0) * to_it.owned[own]) / steps;
    };
    const int own_number = spec.topology.worker_number(worker);
    double factors_in = 0.0;
    for (int other = 0; other < strategy.workers(); ++other)
      if (other != own_number) factors_in += simulation::factor_bytes(spec, other);
    const double factors_out = (workers - 1.0) * simulation::factor_bytes(spec, own_number);
    bytes.worker_out = std::max(bytes.worker_out, of(gradients, weights) + factors_out);
    bytes.worker_in = std::max(bytes.worker_in, of(weights, gradients) + factors_in);
  }
  if (strategy.parallel.central()) {
    bytes.worker_out = gradients.all / steps;
    bytes.worker_in = weights.all / steps;
    bytes.server_out = workers * bytes.worker_in;
    bytes.server_in = workers * bytes.worker_out;
  }
  return bytes;
}

StepBytes step_bytes(const Situation& situation, const Strategy& strategy) {
  return step_bytes(strategy, situation.spec_of(strategy, 1));
}

}  // namespace duplex::tools
