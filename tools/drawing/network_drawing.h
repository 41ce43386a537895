// Draws a network: as SVG, or in the language of Graphviz.
#pragma once
#include <string>
#include <vector>

#include "layers/model.h"

namespace duplex::tools {

/// Things that a drawing shows beside the layers: who computes them, and what leaves them.
struct Overlay {
  int ranks = 0;  ///< Each has a colour; 0: there is nothing to show.
  /// By node: the part of it that each rank computes; empty: no rank does.
  std::vector<std::vector<double>> parts;
  std::vector<double> weights;     ///< By node: 0, edges from it are as usual, to 1, thickest.
  std::vector<std::string> notes;  ///< By node: what a pointer on it shows; may be empty.
};

/// Has layers that no rank computes, since they only put together what they read, pass on all of
/// that, and scales the weights to 0..1.
void scale_weights(const Model& model, Overlay& overlay);

/// Returns an SVG, layers in rows from top to bottom, blocks in frames (Figures D.1 to D.4 of the
/// thesis). It stands alone, and takes the colours of a page that it is put into.
std::string svg_of(const Model& model, const Overlay& overlay = {});

/// Returns a graph for `dot`.
std::string dot_of(const Model& model);

}  // namespace duplex::tools
