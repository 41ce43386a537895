// Says which rank computes which part of a network.
#pragma once
#include <cstdint>
#include <functional>
#include <vector>

#include "layers/placement/region.h"
#include "layers/placement/units.h"

namespace duplex {

/// Some channels of some samples of a unit's output, which a rank computes, forward and backward.
struct PlacedRegion {
  std::size_t unit = 0;
  Region region;
  int rank = 0;
};

struct Placement {
  std::int64_t samples = 0;  ///< Of a micro-batch.
  int ranks = 0;
  /// The stage of each rank, where the network is cut into the stages of a pipeline; else empty.
  std::vector<int> stage_of;
  /// Every channel of every sample of every unit is in one of them. What one rank computes of a
  /// tile goes to another as a whole, or not at all.
  std::vector<PlacedRegion> tiles;
};

/// Throws Error(usage) unless the tiles are parts of these units, lie on one rank each, and are all
/// of them, and every rank has some.
void require_complete(const Placement& placement, const Units& units);

/// Joins regions that do not overlap to fewer and larger ones: neighbours in channels where
/// `allowed` says so, then neighbours in samples. Returns them in ascending order of samples, then
/// channels.
std::vector<Region> joined(std::vector<Region> regions,
                           const std::function<bool(const Channels&)>& allowed);

/// Returns what every rank computes as few large pieces, unit by unit and rank by rank.
std::vector<PlacedRegion> pieces_of(const Placement& placement, const Units& units);

}  // namespace duplex
