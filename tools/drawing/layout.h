// Places the layers of a network in its drawing: in rows from top to bottom, each below all that it
// reads.
#pragma once
#include <cstddef>
#include <vector>

#include "layers/model.h"

namespace duplex::tools {

struct Point {
  double x = 0.0, y = 0.0;
};

struct Layout {
  /// Sizes of a layer's box in pixels, and the distance between the tops of two rows.
  static constexpr double width = 150.0, height = 36.0, pitch = 58.0, margin = 20.0;

  struct Edge {
    Model::Node from = 0, to = 0;
    std::vector<Point> points;  ///< From the bottom of `from` to the top of `to`.
  };

  std::vector<Point> tops;  ///< The middle of each layer's upper edge, by node.
  std::vector<Edge> edges;
  double drawing_width = 0.0, drawing_height = 0.0;
};

/// Layers that training alone runs stand to the right of all others.
Layout layout_of(const Model& model);

}  // namespace duplex::tools
