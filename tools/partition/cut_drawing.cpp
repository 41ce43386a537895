#include "tools/partition/cut_drawing.h"

#include "tools/drawing/network_drawing.h"
#include "tools/partition/cut_table.h"

namespace duplex::tools {

std::string svg_of(const Model& model, const Tiles& tiles, const Cut& cut) {
  const std::size_t nodes = model.nodes().size();
  Overlay overlay;
  overlay.ranks = static_cast<int>(cut.ranks.size());
  overlay.parts.resize(nodes);
  overlay.weights.assign(nodes, 0.0);
  overlay.notes.resize(nodes);
  for (std::size_t unit = 0; unit < tiles.units().count(); ++unit) {
    const CutShare sum = sum_of(cut.units[unit]);
    const std::vector<Model::Node>& layers = tiles.units()[unit].layers;
    for (const Model::Node node : layers)
      overlay.parts[static_cast<std::size_t>(node)] = parts_of(tiles, unit, cut);
    const auto last = static_cast<std::size_t>(layers.back());
    overlay.weights[last] = static_cast<double>(sum.maps_sent());
    overlay.notes[last] =
        "maps " + megabytes(sum.maps_sent()) + " MB, weights " + megabytes(sum.weights_out) + " MB";
  }
  scale_weights(model, overlay);
  return svg_of(model, overlay);
}

}  // namespace duplex::tools
