#include "tools/partition/placing.h"

#include <algorithm>
#include <numeric>

#include "core/error.h"

namespace duplex::tools {
namespace {

/// Shares the samples of every stage out among the ranks that have it.
Placement place_stages(const Tiles& tiles, const PlacingSpec& spec) {
  const int ranks = static_cast<int>(spec.speeds.size());
  const int stages = spec.stages > 0 ? spec.stages : ranks;
  if (ranks % stages != 0)
    throw Error(std::to_string(stages) + " stages cannot be shared out evenly among " +
                    std::to_string(ranks) + " ranks",
                Exit::usage);
  if (static_cast<std::size_t>(stages) > tiles.units().count())
    throw Error(std::to_string(stages) + " stages are more than the network's " +
                    std::to_string(tiles.units().count()) + " layers that can be cut apart",
                Exit::usage);
  const int group = ranks / stages;
  Speeds of_stages;
  for (int stage = 0; stage < stages; ++stage) {
    const auto first = spec.speeds.begin() + stage * group;
    of_stages.push_back(std::accumulate(first, first + group, 0.0));
  }
  if (spec.samples < group)
    throw Error("a micro-batch of " + std::to_string(spec.samples) +
                    " images is too small for the " + std::to_string(group) +
                    " ranks of a stage: take a larger batch or fewer micro-batches",
                Exit::usage);
  const Parts stage_of = place_by_layers(tiles, of_stages, Idle::none);
  Placement placement{spec.samples, ranks, {}};
  for (std::size_t unit = 0; unit < tiles.units().count(); ++unit) {
    const int stage = stage_of[tiles.number(unit, 0, 0)];
    // Each rank of the stage has samples by its speed, one at least.
    double before = 0.0;
    std::int64_t first = 0;
    for (int i = 0; i < group; ++i) {
      const int rank = stage * group + i;
      before +=
          spec.speeds[static_cast<std::size_t>(rank)] / of_stages[static_cast<std::size_t>(stage)];
      const std::int64_t end =
          i + 1 == group
              ? spec.samples
              : std::clamp<std::int64_t>(
                    static_cast<std::int64_t>(before * static_cast<double>(spec.samples) + 0.5),
                    first + 1, spec.samples - (group - 1 - i));
      placement.tiles.push_back(
          {unit, {first, end - first, {0, tiles.units()[unit].channels}}, rank});
      first = end;
    }
  }
  return placement;
}

Placement placement_of(const Tiles& tiles, const Parts& parts, const PlacingSpec& spec) {
  Placement placement{spec.samples, static_cast<int>(spec.speeds.size()), {}};
  std::vector<std::int64_t> first{0};
  for (int shard = 0; shard < tiles.shards(); ++shard)
    first.push_back(first.back() + tiles.samples(shard));
  for (std::size_t tile = 0; tile < tiles.count(); ++tile) {
    const Tile& each = tiles[tile];
    const auto shard = static_cast<std::size_t>(each.shard);
    placement.tiles.push_back(
        {each.unit,
         {first[shard], first[shard + 1] - first[shard], tiles.channels(each.unit, each.block)},
         parts[tile]});
  }
  return placement;
}

}  // namespace

const std::vector<std::string>& cutting_strategies() {
  static const std::vector<std::string> names{"owt", "filter", "pipeline", "hybrid", "hypergraph"};
  return names;
}

TileSpec usual_tiles(std::int64_t batch, const Speeds& speeds) {
  constexpr int usual_shards = 16;
  const int ranks = static_cast<int>(speeds.size());
  const bool alike = std::count(speeds.begin(), speeds.end(), speeds.front()) ==
                     static_cast<std::ptrdiff_t>(speeds.size());
  TileSpec spec;
  spec.batch = batch;
  spec.shards = spec.blocks = ranks * std::max(usual_shards / ranks, alike ? 1 : 2);
  return spec;
}

Placement place(const Model& model, const PlacingSpec& spec) {
  TileSpec tile_spec = usual_tiles(spec.samples, spec.speeds);
  tile_spec.micro_batches = spec.micro_batches;
  tile_spec.seconds = spec.seconds;
  const Tiles tiles(model, tile_spec);
  if (spec.strategy == "pipeline") return place_stages(tiles, spec);
  if (spec.stages > 0) throw Error("stages go with the strategy pipeline", Exit::usage);
  if (spec.strategy != "hypergraph")
    return placement_of(tiles, named_cut(spec.strategy, tiles, model, spec.speeds).parts, spec);
  CutSpec cut;
  cut.speeds = spec.speeds;
  cut.seed = spec.seed;
  cut.threads = spec.threads;
  return placement_of(tiles, all_cuts(tiles, tiles.hypergraph(), model, cut).back().parts, spec);
}

}  // namespace duplex::tools
