#include "tools/partition/cut.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/error.h"
#include "tools/partition/grids.h"
#include "tools/partition/partitioner.h"

namespace duplex::tools {
namespace {

/// The ranks that have some of these tiles, each once, in order.
std::vector<std::size_t> ranks_of(const Parts& parts,
                                  const std::vector<Hypergraph::Vertex>& tiles) {
  std::vector<std::size_t> ranks;
  for (const Hypergraph::Vertex tile : tiles)
    ranks.push_back(static_cast<std::size_t>(parts[tile]));
  std::sort(ranks.begin(), ranks.end());
  ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
  return ranks;
}

void count_maps(const Tiles& tiles, std::size_t tile, const Parts& parts,
                std::vector<CutShare>& shares) {
  const auto own = static_cast<std::size_t>(parts[tile]);
  const std::int64_t map = tiles.map_bytes(tile), gradient = tiles.gradient_bytes(tile);
  for (const std::size_t rank : ranks_of(parts, tiles.readers(tile))) {
    if (rank == own) continue;
    shares[own].maps_out += map;
    shares[rank].maps_in += map;
    shares[rank].activations += map;
    shares[rank].gradients_out += gradient;
    shares[own].gradients_in += gradient;
  }
}

/// The parameters of a block are owned by all who hold them, in even parts (net's ShardMap).
void count_weights(const Tiles& tiles, std::size_t unit, int block, const Parts& parts,
                   std::vector<CutShare>& shares) {
  std::vector<Hypergraph::Vertex> shards;
  for (int shard = 0; shard < tiles.shards(); ++shard)
    shards.push_back(static_cast<Hypergraph::Vertex>(tiles.number(unit, block, shard)));
  const std::vector<std::size_t> holders = ranks_of(parts, shards);
  const auto count = static_cast<std::int64_t>(holders.size());
  const std::int64_t bytes = tiles.weight_bytes(unit, block);
  for (std::int64_t i = 0; i < count; ++i) {
    CutShare& share = shares[holders[static_cast<std::size_t>(i)]];
    const std::int64_t owned = bytes / 4 * (i + 1) / count * 4 - bytes / 4 * i / count * 4;
    share.parameters += bytes;
    share.weights_out += (bytes - owned) + owned * (count - 1);
    share.weights_in += owned * (count - 1) + (bytes - owned);
  }
}

}  // namespace

void CutShare::add(const CutShare& other) {
  work += other.work;
  maps_out += other.maps_out;
  maps_in += other.maps_in;
  gradients_out += other.gradients_out;
  gradients_in += other.gradients_in;
  weights_out += other.weights_out;
  weights_in += other.weights_in;
  parameters += other.parameters;
  activations += other.activations;
}

CutShare sum_of(const std::vector<CutShare>& shares) {
  CutShare sum;
  for (const CutShare& share : shares) sum.add(share);
  return sum;
}

std::int64_t Cut::bytes() const {
  return sum_of(ranks).out();
}

std::int64_t Cut::most_out() const {
  std::int64_t most = 0;
  for (const CutShare& rank : ranks) most = std::max(most, rank.out());
  return most;
}

double Cut::imbalance(const Speeds& speeds) const {
  double all = 0.0, most = 0.0;
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    const auto work = static_cast<double>(ranks[rank].work);
    all += work;
    most = std::max(most, work / speeds[rank]);
  }
  const double even = all / std::accumulate(speeds.begin(), speeds.end(), 0.0);
  return even > 0.0 ? most / even - 1.0 : 0.0;
}

double Cut::least_seconds(const Speeds& speeds, double rate) const {
  double most = 0.0;
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    const double computing = 1e-12 * static_cast<double>(ranks[rank].work) / speeds[rank];
    const auto bytes = static_cast<double>(std::max(ranks[rank].out(), ranks[rank].in()));
    most = std::max({most, computing, bytes / rate});
  }
  return most;
}

Cut cut_of(const Tiles& tiles, std::string strategy, Parts parts, int ranks) {
  Cut cut;
  cut.strategy = std::move(strategy);
  cut.units.assign(tiles.units().count(), std::vector<CutShare>(static_cast<std::size_t>(ranks)));
  for (std::size_t tile = 0; tile < tiles.count(); ++tile) {
    const auto& [number, block, shard] = tiles[tile];
    const Unit& unit = tiles.units()[number];
    CutShare& own = cut.units[number][static_cast<std::size_t>(parts[tile])];
    own.work += tiles.work(tile);
    own.activations += 4 * unit.activations * tiles.channels(number, block).count() /
                       unit.channels * tiles.samples(shard);
    count_maps(tiles, tile, parts, cut.units[number]);
    if (shard == 0) count_weights(tiles, number, block, parts, cut.units[number]);
  }
  cut.ranks.resize(static_cast<std::size_t>(ranks));
  for (const auto& unit : cut.units)
    for (std::size_t rank = 0; rank < unit.size(); ++rank) cut.ranks[rank].add(unit[rank]);
  cut.parts = std::move(parts);
  return cut;
}

std::vector<double> parts_of(const Tiles& tiles, std::size_t unit, const Cut& cut) {
  std::vector<double> parts(cut.ranks.size(), 0.0);
  std::int64_t all = 0;
  for (int block = 0; block < tiles.blocks(unit); ++block) {
    for (int shard = 0; shard < tiles.shards(); ++shard) {
      const std::int64_t size = tiles.channels(unit, block).count() * tiles.samples(shard);
      const std::size_t tile = tiles.number(unit, block, shard);
      parts[static_cast<std::size_t>(cut.parts[tile])] += static_cast<double>(size);
      all += size;
    }
  }
  for (double& part : parts) part /= static_cast<double>(all);
  return parts;
}

Cut named_cut(const std::string& strategy, const Tiles& tiles, const Model& model,
              const Speeds& speeds) {
  const int ranks = static_cast<int>(speeds.size());
  const auto cut = [&](Parts parts) { return cut_of(tiles, strategy, std::move(parts), ranks); };
  if (strategy == "data") return cut(place_by_samples(tiles, speeds));
  if (strategy == "owt") return cut(place_by_one_weird_trick(tiles, model, speeds));
  if (strategy == "filter") return cut(place_by_channels(tiles, speeds));
  if (strategy == "pipeline") return cut(place_by_layers(tiles, speeds));
  if (strategy != "hybrid") throw Error("no strategy is named " + strategy, Exit::usage);
  std::vector<Cut> found;
  for (const int parts : {ranks, 1}) {
    const Grids grids = best_grids(tiles, speeds, Grids(tiles.units().count(), parts));
    found.push_back(cut(place_by_grids(tiles, speeds, grids)));
  }
  return found[0].bytes() <= found[1].bytes() ? found[0] : found[1];
}

std::vector<Cut> all_cuts(const Tiles& tiles, const Hypergraph& graph, const Model& model,
                          const CutSpec& spec) {
  std::vector<Cut> cuts;
  for (const char* strategy : {"data", "owt", "filter", "pipeline"})
    cuts.push_back(named_cut(strategy, tiles, model, spec.speeds));
  if (spec.speeds.size() <= most_grid_ranks)
    cuts.push_back(named_cut("hybrid", tiles, model, spec.speeds));

  PartitionSpec partition_spec;
  partition_spec.seed = spec.seed;
  partition_spec.starts = spec.starts;
  partition_spec.threads = spec.threads;
  const double all = std::accumulate(spec.speeds.begin(), spec.speeds.end(), 0.0);
  for (const double speed : spec.speeds)
    partition_spec.limits.push_back(static_cast<std::int64_t>(std::ceil(
        (1.0 + spec.imbalance) * static_cast<double>(graph.total_weight()) * speed / all)));
  for (const Cut& cut : cuts) partition_spec.seeds.push_back(cut.parts);
  cuts.push_back(cut_of(tiles, "hypergraph", best_partitions(graph, partition_spec).front().parts,
                        static_cast<int>(spec.speeds.size())));
  return cuts;
}

}  // namespace duplex::tools
