// Draws a network that a run has cut over its ranks.
#pragma once
#include <cstdint>
#include <string>

#include "tools/parts/cut_part.h"

namespace duplex::tools {

/// Returns an SVG: each layer in the colours of the ranks that compute it, edges as thick as what
/// of its output, and of the gradient, crosses between them. A pointer on a layer shows the bytes
/// of a step, which has so many micro-batches.
std::string svg_of(const CutPart& cut, std::uint64_t micro_batches);

}  // namespace duplex::tools
