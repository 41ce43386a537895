// Draws a network: as SVG, or in the language of Graphviz.
#pragma once
#include <string>

#include "layers/model.h"

namespace duplex::tools {

/// Returns an SVG, layers in rows from top to bottom, blocks in frames (Figures D.1 to D.4 of the
/// thesis). It stands alone, and takes the colours of a page that it is put into.
std::string svg_of(const Model& model);

/// Returns a graph for `dot`.
std::string dot_of(const Model& model);

}  // namespace duplex::tools
