// Refinement: moves vertices between parts as long as nets reach into fewer of them (Fiduccia and
// Mattheyses 1982; for any number of parts, Sanchis 1989).
#pragma once
#include <cstdint>
#include <vector>

#include "tools/partition/draws.h"
#include "tools/partition/hypergraph.h"

namespace duplex::tools {

/// Makes `parts` better: parts are less far beyond their limits, or as far, and then the
/// connectivity cost falls, or stays. `limits`: the most weight of every part. Returns the cost.
std::int64_t refine(const Hypergraph& graph, const std::vector<std::int64_t>& limits, Parts& parts,
                    Draws& draws);

/// Returns by how much the parts are beyond their limits together.
std::int64_t overweight(const Hypergraph& graph, const std::vector<std::int64_t>& limits,
                        const Parts& parts);

}  // namespace duplex::tools
