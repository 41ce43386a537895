// The memory of a training's ranks as tables of text, in MiB.
#pragma once
#include <string>
#include <vector>

#include "tools/memory/network_memory.h"
#include "tools/memory/rank_memory.h"

namespace duplex::tools {

/// A column for each rank and a row for each use that any of them has, with the sums below. On a
/// GPU there are two tables, of its memory and of the host's.
std::string memory_table(const std::vector<RankMemory>& ranks);

/// A row for each layer; what follows says why the arena is smaller than the sum.
std::string layer_memory_table(const NetworkMemory& network);

}  // namespace duplex::tools
