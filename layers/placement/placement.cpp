#include "layers/placement/placement.h"

#include <algorithm>
#include <string>
#include <tuple>

#include "core/error.h"

namespace duplex {
namespace {

std::string text_of(const Region& region) {
  return "channels " + std::to_string(region.channels.first) + " to " +
         std::to_string(region.channels.end - 1) + " of samples " +
         std::to_string(region.first_sample) + " to " + std::to_string(region.end_sample() - 1);
}

/// Returns true if one layer can compute them: all groups of the unit's convolution that they reach
/// into are whole, or there is one.
bool fit_groups(const Unit& unit, const Channels& channels) {
  const std::int64_t run = unit.channels / unit.groups;
  return channels.first / run == (channels.end - 1) / run ||
         (channels.first % run == 0 && channels.end % run == 0);
}

void require_tile(const PlacedRegion& tile, const Placement& placement, const Units& units) {
  if (tile.unit >= units.count())
    throw Error(
        "a tile of layer " + std::to_string(tile.unit) + ", of " + std::to_string(units.count()),
        Exit::usage);
  const Unit& unit = units[tile.unit];
  const std::string what = unit.name + ", " + text_of(tile.region);
  if (tile.rank < 0 || tile.rank >= placement.ranks)
    throw Error(what + ": they lie on rank " + std::to_string(tile.rank) + ", of " +
                    std::to_string(placement.ranks),
                Exit::usage);
  const Region all{0, placement.samples, {0, unit.channels}};
  if (tile.region.empty() || intersection(tile.region, all) != tile.region)
    throw Error(what + ": the layer has " + text_of(all), Exit::usage);
  if (unit.whole && tile.region.channels != all.channels)
    throw Error(what + ": all of the layer's channels are computed at once", Exit::usage);
  if (!fit_groups(unit, tile.region.channels))
    throw Error(what + ": they are no whole groups of " +
                    std::to_string(unit.channels / unit.groups) + ", and lie in several",
                Exit::usage);
}

}  // namespace

void require_complete(const Placement& placement, const Units& units) {
  std::vector<std::int64_t> covered(units.count(), 0);
  std::vector<std::vector<Region>> of(units.count());
  std::vector<bool> busy(static_cast<std::size_t>(std::max(placement.ranks, 0)), false);
  for (const PlacedRegion& tile : placement.tiles) {
    require_tile(tile, placement, units);
    busy[static_cast<std::size_t>(tile.rank)] = true;
    for (const Region& other : of[tile.unit])
      if (!intersection(tile.region, other).empty())
        throw Error(units[tile.unit].name + ": " + text_of(intersection(tile.region, other)) +
                        " are placed twice",
                    Exit::usage);
    of[tile.unit].push_back(tile.region);
    covered[tile.unit] += tile.region.samples * tile.region.channels.count();
  }
  for (std::size_t unit = 0; unit < units.count(); ++unit)
    if (covered[unit] != placement.samples * units[unit].channels)
      throw Error(units[unit].name + ": some channels of some samples are on no rank", Exit::usage);
  for (std::size_t rank = 0; rank < busy.size(); ++rank)
    if (!busy[rank])
      throw Error("rank " + std::to_string(rank) + " has no layer to compute", Exit::usage);
}

std::vector<Region> joined(std::vector<Region> regions,
                           const std::function<bool(const Channels&)>& allowed) {
  std::sort(regions.begin(), regions.end(), [](const Region& a, const Region& b) {
    return std::tie(a.first_sample, a.samples, a.channels.first) <
           std::tie(b.first_sample, b.samples, b.channels.first);
  });
  // Runs of channels, for each run of samples.
  std::vector<std::vector<Region>> rows;
  for (const Region& region : regions) {
    const bool same = !rows.empty() && rows.back()[0].first_sample == region.first_sample &&
                      rows.back()[0].samples == region.samples;
    if (!same) rows.emplace_back();
    if (same && rows.back().back().channels.end == region.channels.first &&
        allowed({rows.back().back().channels.first, region.channels.end})) {
      rows.back().back().channels.end = region.channels.end;
    } else {
      rows.back().push_back(region);
    }
  }
  // A row that continues another one, with the same channels, becomes one with it.
  const auto continues = [](const std::vector<Region>& above, const std::vector<Region>& row) {
    return above[0].end_sample() == row[0].first_sample &&
           std::equal(above.begin(), above.end(), row.begin(), row.end(),
                      [](const Region& a, const Region& b) { return a.channels == b.channels; });
  };
  std::vector<std::vector<Region>> higher;
  for (const std::vector<Region>& row : rows) {
    const auto above = std::find_if(higher.begin(), higher.end(),
                                    [&](const auto& other) { return continues(other, row); });
    if (above == higher.end()) {
      higher.push_back(row);
    } else {
      for (Region& region : *above) region.samples += row[0].samples;
    }
  }
  std::vector<Region> all;
  for (const std::vector<Region>& row : higher) all.insert(all.end(), row.begin(), row.end());
  return all;
}

std::vector<PlacedRegion> pieces_of(const Placement& placement, const Units& units) {
  std::vector<std::vector<std::vector<Region>>> of(
      units.count(), std::vector<std::vector<Region>>(static_cast<std::size_t>(placement.ranks)));
  for (const PlacedRegion& tile : placement.tiles)
    of[tile.unit][static_cast<std::size_t>(tile.rank)].push_back(tile.region);
  std::vector<PlacedRegion> pieces;
  for (std::size_t unit = 0; unit < units.count(); ++unit)
    for (int rank = 0; rank < placement.ranks; ++rank)
      for (const Region& region :
           joined(of[unit][static_cast<std::size_t>(rank)],
                  [&](const Channels& channels) { return fit_groups(units[unit], channels); }))
        pieces.push_back({unit, region, rank});
  return pieces;
}

}  // namespace duplex
