#include "layers/parts/network_part.h"

namespace duplex {

std::vector<bool> reaches_loss(const Model& model) {
  std::vector<bool> reaches(model.nodes().size(), false);
  for (std::size_t node = model.nodes().size(); node-- > 1;) {
    const Model::Entry& entry = model.nodes()[node];
    if (entry.layer->loss_weight() != 0.0F) reaches[node] = true;
    if (!reaches[node]) continue;
    for (const Model::Node input : entry.inputs) reaches[static_cast<std::size_t>(input)] = true;
  }
  return reaches;
}

}  // namespace duplex
