#include "tools/parts/part_drawing.h"

#include <vector>

#include "tools/drawing/network_drawing.h"
#include "tools/partition/cut_table.h"

namespace duplex::tools {
namespace {

/// The bytes of a layer that cross between ranks in a step.
struct Crossing {
  std::int64_t maps = 0, weights = 0;
};

std::vector<Crossing> crossings(const CutPart& cut, std::uint64_t micro_batches) {
  constexpr auto size = static_cast<std::int64_t>(sizeof(float));
  const Model& model = cut.network().whole();
  std::vector<Crossing> of(model.nodes().size());
  for (const MapTransfer& transfer : cut.network().transfers())
    of[static_cast<std::size_t>(transfer.node)].maps +=
        static_cast<std::int64_t>(transfer.elements * micro_batches) * size *
        (transfer.gradient ? 2 : 1);
  std::vector<std::size_t> node_of;  // By trained parameter.
  for (std::size_t node = 0; node < model.nodes().size(); ++node)
    for (const ParameterSpec& spec : model.parameters(model.nodes()[node]))
      if (spec.trained) node_of.push_back(node);
  // Each member but the owner sends gradients, and is sent weights.
  for (const PartSpan& span : cut.spans())
    of[node_of[span.parameter]].weights +=
        2 * static_cast<std::int64_t>(span.count * (span.members.size() - 1)) * size;
  return of;
}

}  // namespace

std::string svg_of(const CutPart& cut, std::uint64_t micro_batches) {
  const Model& model = cut.network().whole();
  const Placement& placement = cut.network().placement();
  const std::size_t nodes = model.nodes().size();
  const std::vector<Crossing> crossing = crossings(cut, micro_batches);
  Overlay overlay;
  overlay.ranks = placement.ranks;
  overlay.parts.resize(nodes);
  overlay.weights.assign(nodes, 0.0);
  overlay.notes.resize(nodes);
  for (const PlacedRegion& piece : cut.network().pieces()) {
    const Unit& unit = cut.network().units()[piece.unit];
    const double part = static_cast<double>(piece.region.samples * piece.region.channels.count()) /
                        static_cast<double>(placement.samples * unit.channels);
    for (const Model::Node layer : unit.layers) {
      std::vector<double>& parts = overlay.parts[static_cast<std::size_t>(layer)];
      parts.resize(static_cast<std::size_t>(placement.ranks));
      parts[static_cast<std::size_t>(piece.rank)] += part;
    }
  }
  for (std::size_t node = 0; node < nodes; ++node) {
    overlay.weights[node] = static_cast<double>(crossing[node].maps);
    if (!overlay.parts[node].empty())
      overlay.notes[node] = "maps " + megabytes(crossing[node].maps) + " MB, weights " +
                            megabytes(crossing[node].weights) + " MB";
  }
  scale_weights(model, overlay);
  return svg_of(model, overlay);
}

}  // namespace duplex::tools
