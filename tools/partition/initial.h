// A first partition of a small hypergraph, by recursive bisection.
#pragma once
#include <cstdint>
#include <vector>

#include "tools/partition/draws.h"
#include "tools/partition/hypergraph.h"

namespace duplex::tools {

/// Bisects the vertices again and again until there are as many parts as limits: each time several
/// halves, most of which grow from a vertex drawn at random, are refined, and the best is kept.
/// Parts may be beyond their limits.
Parts bisect(const Hypergraph& graph, const std::vector<std::int64_t>& limits, Draws& draws);

}  // namespace duplex::tools
