#include "tools/parts/placing.h"

#include <algorithm>
#include <numeric>

#include "core/error.h"
#include "tools/plan/stage_list.h"

namespace duplex::tools {
namespace {

/// Sums of the speeds of the ranks that have each stage.
Speeds speeds_of(const std::vector<StageRanks>& stages, const Speeds& speeds) {
  Speeds sums;
  auto next = speeds.begin();
  for (const StageRanks& stage : stages) {
    sums.push_back(std::accumulate(next, next + stage.ranks, 0.0));
    next += stage.ranks;
  }
  return sums;
}

/// The first unit of every stage, and the part of it that the stage before computes.
struct StageBegin {
  std::size_t unit = 0;
  double before = 0.0;
};

std::vector<StageBegin> begins_of(const Tiles& tiles, const std::vector<StageRanks>& stages,
                                  const Speeds& speeds) {
  const Units& units = tiles.units();
  std::vector<StageBegin> begins{{}};
  if (stages.size() < 2 || stages[1].first.empty()) {
    const std::vector<std::size_t> starts = layer_runs(tiles, speeds, Idle::none);
    for (std::size_t stage = 1; stage < stages.size(); ++stage)
      begins.push_back({starts[stage], 0.0});
    return begins;
  }
  for (std::size_t stage = 1; stage < stages.size(); ++stage) {
    const std::string& first = stages[stage].first;
    std::size_t unit = 0;
    while (unit < units.count() && units[unit].name != first) ++unit;
    if (unit == units.count())
      throw Error("no stage can begin with '" + first + "': " + units.model().title() +
                      " has no such layer, or it goes with the one before it (duplex partition "
                      "lists those that can be cut apart)",
                  Exit::usage);
    if (unit <= begins.back().unit)
      throw Error("the stage that begins with " + first + " leaves the one before it no layer",
                  Exit::usage);
    begins.push_back({unit, stages[stage].before});
  }
  return begins;
}

/// Some samples of a micro-batch, on a rank.
struct RankSamples {
  std::int64_t first = 0, end = 0;
  int rank = 0;
};

/// Shares the samples of a micro-batch out among ranks in a row by their speeds, one at least to
/// each.
std::vector<RankSamples> share_samples(std::int64_t samples, int first_rank, int ranks,
                                       const Speeds& speeds) {
  const auto begin = speeds.begin() + first_rank;
  const double all = std::accumulate(begin, begin + ranks, 0.0);
  std::vector<RankSamples> shares;
  double before = 0.0;
  std::int64_t first = 0;
  for (int i = 0; i < ranks; ++i) {
    before += begin[i] / all;
    const std::int64_t end =
        i + 1 == ranks ? samples
                       : std::clamp<std::int64_t>(
                             static_cast<std::int64_t>(before * static_cast<double>(samples) + 0.5),
                             first + 1, samples - (ranks - 1 - i));
    shares.push_back({first, end, first_rank + i});
    first = end;
  }
  return shares;
}

/// Returns who computes which samples of a unit of which the stage before has a part: its ranks the
/// first of theirs, and those behind the rest.
std::vector<RankSamples> shared_unit(const std::vector<RankSamples>& stage_before,
                                     const std::vector<RankSamples>& stage, double before) {
  std::vector<RankSamples> shares;
  for (const RankSamples& of : stage_before) {
    const auto count =
        static_cast<std::int64_t>(before * static_cast<double>(of.end - of.first) + 0.5);
    if (count > 0) shares.push_back({of.first, of.first + count, of.rank});
    for (const RankSamples& behind : stage) {
      const RankSamples rest{std::max(behind.first, of.first + count), std::min(behind.end, of.end),
                             behind.rank};
      if (rest.first < rest.end) shares.push_back(rest);
    }
  }
  return shares;
}

/// Shares the samples of every stage out among the ranks that have it.
Placement place_stages(const Tiles& tiles, const PlacingSpec& spec) {
  const int ranks = static_cast<int>(spec.speeds.size());
  const Units& units = tiles.units();
  const std::vector<StageRanks> stages = parse_stages(spec.stages, ranks);
  if (stages.size() > units.count())
    throw Error(std::to_string(stages.size()) + " stages are more than the network's " +
                    std::to_string(units.count()) + " layers that can be cut apart",
                Exit::usage);
  Placement placement;
  placement.samples = spec.samples;
  placement.ranks = ranks;
  std::vector<std::vector<RankSamples>> shares;  // By stage.
  for (std::size_t stage = 0; stage < stages.size(); ++stage) {
    const int count = stages[stage].ranks;
    if (spec.samples < count)
      throw Error("a micro-batch of " + std::to_string(spec.samples) +
                      " images is too small for the " + std::to_string(count) +
                      " ranks of a stage: take a larger batch or fewer micro-batches",
                  Exit::usage);
    shares.push_back(share_samples(spec.samples, static_cast<int>(placement.stage_of.size()), count,
                                   spec.speeds));
    placement.stage_of.insert(placement.stage_of.end(), static_cast<std::size_t>(count),
                              static_cast<int>(stage));
  }
  const std::vector<StageBegin> begins = begins_of(tiles, stages, speeds_of(stages, spec.speeds));
  std::size_t stage = 0;
  for (std::size_t unit = 0; unit < units.count(); ++unit) {
    const bool begin = stage + 1 < begins.size() && begins[stage + 1].unit == unit;
    if (begin) ++stage;
    for (const RankSamples& each :
         begin ? shared_unit(shares[stage - 1], shares[stage], begins[stage].before)
               : shares[stage])
      placement.tiles.push_back(
          {unit, {each.first, each.end - each.first, {0, units[unit].channels}}, each.rank});
  }
  return placement;
}

Placement placement_of(const Tiles& tiles, const Parts& parts, const PlacingSpec& spec) {
  Placement placement;
  placement.samples = spec.samples;
  placement.ranks = static_cast<int>(spec.speeds.size());
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
  if (!spec.stages.empty()) throw Error("stages go with the strategy pipeline", Exit::usage);
  if (spec.strategy != "hypergraph")
    return placement_of(tiles, named_cut(spec.strategy, tiles, model, spec.speeds).parts, spec);
  CutSpec cut;
  cut.speeds = spec.speeds;
  cut.seed = spec.seed;
  cut.threads = spec.threads;
  return placement_of(tiles, all_cuts(tiles, tiles.hypergraph(), model, cut).back().parts, spec);
}

}  // namespace duplex::tools
