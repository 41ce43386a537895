// Grids: every unit is cut in its own way, the batch in d parts and its channels in n / d, for n
// ranks. Data parallelism, filter splitting and one weird trick are some of these ways.
#pragma once
#include <vector>

#include "tools/partition/strategies.h"

namespace duplex::tools {

/// The most ranks that grids are found for.
constexpr std::size_t most_grid_ranks = 64;

/// The parts of the batch that each unit's grid has, a divisor of the number of ranks.
using Grids = std::vector<int>;

/// Finds grids of few bytes by descent from `start`, unit by unit and run by run of units. For as
/// many ranks as there are speeds, most_grid_ranks at most.
Grids best_grids(const Tiles& tiles, const Speeds& speeds, const Grids& start);

/// The ranks are d groups in a row. Each has a part of the batch, by its speed, and each of its
/// ranks a part of the channels.
Parts place_by_grids(const Tiles& tiles, const Speeds& speeds, const Grids& grids);

}  // namespace duplex::tools
