#include "tools/parts/part_times.h"

#include <functional>
#include <map>
#include <string>

#include "layers/parts/crossing.h"

namespace duplex::tools {
namespace {

std::int64_t samples_of(const Model::Entry& entry, std::int64_t all) {
  return entry.part.samples > 0 ? entry.part.samples : all;
}

/// Asks for the seconds of every layer that computes some of a layer of the whole network, whose
/// number `layer` gets, and of the other ones.
LayerTimes times_of_layers(
    const NetworkPart& part, const Model& whole,
    const std::function<Seconds(const Model::Entry&, std::size_t layer)>& of_layer,
    const std::function<Seconds(const Model::Entry&)>& of_edge) {
  std::map<std::string, std::size_t> nodes;
  for (std::size_t node = 0; node < whole.nodes().size(); ++node)
    nodes[whole.nodes()[node].name] = node;
  LayerTimes times;
  for (const Model::Entry& entry : part.model.nodes()) {
    const auto found = nodes.find(entry.part.layer.empty() ? entry.name : entry.part.layer);
    Seconds its;
    if (entry.layer) its = found != nodes.end() ? of_layer(entry, found->second) : of_edge(entry);
    times.forward.push_back(its.forward);
    times.backward.push_back(its.backward);
  }
  return times;
}

}  // namespace

LayerTimes part_times(const NetworkPart& part, const Model& whole, std::int64_t samples,
                      const LayerTimes& times) {
  return times_of_layers(
      part, whole,
      [&](const Model::Entry& entry, std::size_t layer) {
        // A layer that reads neighbours has computed their channels, too.
        const double share = static_cast<double>(samples_of(entry, samples) * entry.shape.c()) /
                             static_cast<double>(samples * whole.nodes()[layer].shape.c());
        return Seconds{share * times.forward[layer], share * times.backward[layer]};
      },
      [](const Model::Entry&) { return Seconds(); });
}

LayerTimes part_times(const NetworkPart& part, const Model& whole, std::int64_t samples,
                      const PartCosts& costs) {
  return times_of_layers(
      part, whole,
      [&](const Model::Entry& entry, std::size_t layer) {
        return costs.layer(layer, samples_of(entry, samples), entry.shape.c());
      },
      [&](const Model::Entry& entry) {
        return costs.edge(entry.layer->type(), edge_bytes(part.model, entry, samples));
      });
}

std::int64_t edge_bytes(const Model& part, const Model::Entry& entry, std::int64_t samples) {
  const std::int64_t own = samples_of(entry, samples);
  std::int64_t read = 0;
  for (const Shape& input : part.input_shapes(entry)) read += own * input.elements();
  std::int64_t elements = 0;
  if (const auto* send = dynamic_cast<const SendLayer*>(entry.layer.get())) {
    const std::int64_t map = entry.shape.h() * entry.shape.w();
    for (const SendLayer::Piece& piece : send->pieces())
      elements += static_cast<std::int64_t>(piece.region.elements(map));
    // One piece that is all of it is copied once.
    if (send->pieces().size() > 1 || elements != read) elements += read;
  } else {
    elements = own * entry.shape.elements() + read;
  }
  return elements * static_cast<std::int64_t>(sizeof(float));
}

}  // namespace duplex::tools
