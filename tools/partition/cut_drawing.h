// Draws a cut: the network as a graph, each layer in the colours of the ranks that compute it.
#pragma once
#include <string>

#include "tools/partition/cut.h"

namespace duplex::tools {

/// Returns an SVG. Edges are as thick as what of a layer's output, and of its gradient, crosses
/// between ranks. A pointer on a layer shows the bytes.
std::string svg_of(const Model& model, const Tiles& tiles, const Cut& cut);

}  // namespace duplex::tools
