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

/// Returns the bytes of a step where the network is cut: those of maps and their gradients, and of
/// the gradients and weights of parameters that several ranks have.
std::vector<RankBytes> bytes_of_cut(const simulation::Spec& spec) {
  const simulation::CutRun& cut = *spec.cut;
  std::vector<RankBytes> ranks(static_cast<std::size_t>(spec.topology.size));
  const auto cross = [&](int from, int to, net::Coding coding, net::Values what,
                         std::size_t count) {
    const auto bytes = static_cast<double>(
        net::frame_bytes(spec.protection(), net::expected_bytes(coding, what, count, spec.packed)));
    ranks[static_cast<std::size_t>(from)].out += bytes;
    ranks[static_cast<std::size_t>(to)].in += bytes;
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
  return ranks;
}

std::vector<RankBytes> bytes_of_ranks(const Strategy& strategy, const simulation::Spec& spec) {
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
  std::vector<RankBytes> ranks(size);
  const bool central = strategy.parallel.central();
  if (central) ranks[0] = {workers * weights.all / steps, workers * gradients.all / steps};
  for (const int worker : spec.topology.workers()) {
    const auto own = static_cast<std::size_t>(worker);
    if (central) {
      ranks[own] = {gradients.all / steps, weights.all / steps};
      continue;
    }
    const auto of = [&](const Transfer& to_others, const Transfer& to_it) {
      return (to_others.all - to_others.owned[own] + (workers - 1.0) * to_it.owned[own]) / steps;
    };
    const int own_number = spec.topology.worker_number(worker);
    double factors_in = 0.0;
    for (int other = 0; other < strategy.workers(); ++other)
      if (other != own_number) factors_in += simulation::factor_bytes(spec, other);
    const double factors_out = (workers - 1.0) * simulation::factor_bytes(spec, own_number);
    ranks[own] = {of(gradients, weights) + factors_out, of(weights, gradients) + factors_in};
  }
  return ranks;
}

}  // namespace

std::vector<RankBytes> rank_bytes(const Situation& situation, const Strategy& strategy) {
  return bytes_of_ranks(strategy, situation.spec_of(strategy, 1));
}

StepBytes step_bytes(const Strategy& strategy, const simulation::Spec& spec) {
  const std::vector<RankBytes> ranks = bytes_of_ranks(strategy, spec);
  const std::size_t servers = strategy.parallel.central() ? 1 : 0;
  StepBytes bytes;
  if (servers > 0) bytes.server_out = ranks[0].out, bytes.server_in = ranks[0].in;
  for (std::size_t rank = servers; rank < ranks.size(); ++rank) {
    bytes.worker_out = std::max(bytes.worker_out, ranks[rank].out);
    bytes.worker_in = std::max(bytes.worker_in, ranks[rank].in);
  }
  return bytes;
}

StepBytes step_bytes(const Situation& situation, const Strategy& strategy) {
  return step_bytes(strategy, situation.spec_of(strategy, 1));
}

}  // namespace duplex::tools
