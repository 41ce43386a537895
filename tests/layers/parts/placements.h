// Draws ways to cut a network.
#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <vector>

#include "core/random.h"
#include "layers/placement/placement.h"

namespace duplex::test {

/// Draws a placement: every unit is cut in some blocks of channels and shards of samples, each on
/// any rank.
inline Placement drawn_placement(const Units& units, std::int64_t samples, int ranks,
                                 bool by_samples, std::uint64_t seed) {
  const RandomStream random(seed, stream_of("placement"));
  std::uint64_t next = 0;
  const auto below = [&](std::int64_t bound) {
    return static_cast<std::int64_t>(random.below(next++, static_cast<std::uint32_t>(bound)));
  };
  Placement placement{samples, ranks, {}, {}};
  for (std::size_t unit = 0; unit < units.count(); ++unit) {
    const std::int64_t shards = by_samples ? 1 + below(3) : 1;
    for (const Channels& channels : channel_blocks(units[unit], 1 + below(4)))
      for (std::int64_t shard = 0; shard < shards; ++shard) {
        const std::int64_t first = samples * shard / shards;
        placement.tiles.push_back({unit,
                                   {first, samples * (shard + 1) / shards - first, channels},
                                   static_cast<int>(below(ranks))});
      }
  }
  return placement;
}

/// Cuts the units in a row into stages at drawn places.
inline Placement drawn_stages(const Units& units, std::int64_t samples, int ranks,
                              std::uint64_t seed) {
  const RandomStream random(seed, stream_of("stages"));
  const auto count = static_cast<std::uint32_t>(units.count());
  std::set<std::uint32_t> firsts{0};
  for (std::uint64_t draw = 0; firsts.size() < static_cast<std::size_t>(ranks); ++draw)
    firsts.insert(random.below(draw, count));
  Placement placement{samples, ranks, {}, {}};
  int rank = -1;
  for (std::uint32_t unit = 0; unit < count; ++unit) {
    rank += static_cast<int>(firsts.count(unit));
    placement.tiles.push_back({unit, {0, samples, {0, units[unit].channels}}, rank});
  }
  return placement;
}

inline std::string text_of(const Placement& placement, const Units& units) {
  std::string text;
  for (const PlacedRegion& tile : placement.tiles)
    text += units[tile.unit].name + " [" + std::to_string(tile.region.first_sample) + "+" +
            std::to_string(tile.region.samples) + ", " +
            std::to_string(tile.region.channels.first) + ":" +
            std::to_string(tile.region.channels.end) + "] on " + std::to_string(tile.rank) + "\n";
  return text;
}

/// To rounding, beside the largest of them.
inline void expect_near(const std::vector<float>& values, const std::vector<float>& wanted,
                        const std::string& name) {
  float largest = 0.0F;
  for (const float value : wanted) largest = std::max(largest, std::abs(value));
  ASSERT_EQ(values.size(), wanted.size()) << name;
  for (std::size_t i = 0; i < values.size(); ++i)
    ASSERT_NEAR(values[i], wanted[i], 2e-5F * largest + 1e-7F) << name << " " << i;
}

}  // namespace duplex::test
