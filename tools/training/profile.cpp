#include "tools/training/profile.h"

#include <utility>

#include "core/clock.h"
#include "tools/text/layer_table.h"
#include "tools/text/quartiles.h"
#include "tools/text/table.h"

namespace duplex::tools {
namespace {

std::string rate(double flop, double seconds) {
  return flop > 0.0 && seconds > 0.0 ? fixed(flop / seconds * 1e-9, 1) : "";
}

}  // namespace

Profile::Profile(Network& network, std::uint64_t warm_up)
    : network_(network), warm_up_(warm_up), layers_(network.model().nodes().size()) {
  LayerObserver before = network.observe(nullptr);
  network.observe([this, before = std::move(before)](std::size_t node, Phase phase,
                                                     std::int64_t begin, std::int64_t end) {
    Layer& layer = layers_[node];
    Times& times = phase == Phase::forward ? layer.forward : layer.backward;
    if (times.steps++ >= warm_up_) times.counted.add(seconds(end - begin));
    if (before) before(node, phase, begin, end);
  });
}

Profile::Cost Profile::cost(std::size_t node) const {
  const Model& model = network_.model();
  const Model::Entry& entry = model.nodes()[node];
  const auto macs = static_cast<double>(entry.layer->macs(model.input_shapes(entry)));
  const double forward = 2.0 * macs * static_cast<double>(network_.batch());
  const bool first = entry.inputs.size() == 1 && entry.inputs[0] == model.input();
  return {forward, first ? forward : 2.0 * forward};
}

double Profile::sum() const {
  double sum = 0.0;
  for (const Layer& layer : layers_) sum += layer.forward.median() + layer.backward.median();
  return sum;
}

std::string Profile::table() const {
  Table table({{"layer", Table::Align::left},
               {"type", Table::Align::left},
               {"output", Table::Align::left},
               {"fwd ms", Table::Align::right},
               {"GFLOP/s", Table::Align::right},
               {"bwd ms", Table::Align::right},
               {"GFLOP/s", Table::Align::right},
               {"share", Table::Align::right}});
  std::vector<double> forward, backward;
  double total_forward = 0.0, total_backward = 0.0, flop_forward = 0.0, flop_backward = 0.0;
  for (const Layer& layer : layers_) {
    forward.push_back(layer.forward.median());
    backward.push_back(layer.backward.median());
    total_forward += forward.back();
    total_backward += backward.back();
  }
  const double total = total_forward + total_backward;
  for (std::size_t node = 1; node < layers_.size(); ++node) {
    const Model::Entry& entry = network_.model().nodes()[node];
    const Cost flop = cost(node);
    flop_forward += flop.forward_flop;
    flop_backward += flop.backward_flop;
    const double share = total > 0.0 ? (forward[node] + backward[node]) / total : 0.0;
    table.row({entry.name, entry.layer->type(), map_size(entry.shape),
               fixed(forward[node] * 1e3, 3), rate(flop.forward_flop, forward[node]),
               fixed(backward[node] * 1e3, 3), rate(flop.backward_flop, backward[node]),
               fixed(share * 100.0, 1) + "%"});
  }
  table.rule();
  table.row({"total", "", "", fixed(total_forward * 1e3, 3), rate(flop_forward, total_forward),
             fixed(total_backward * 1e3, 3), rate(flop_backward, total_backward), ""});
  return table.str();
}

std::string Profile::report() const {
  return "layers   the medians of all layers add up to " + duration_text(sum()) +
         "; t_grad is that of whole steps\n\n" + table() + "\n";
}

ProfileFile Profile::file() const {
  ProfileFile profile;
  profile.network = network_.model().title();
  profile.batch = network_.batch();
  profile.device = network_.device().description();
  for (std::size_t node = 1; node < layers_.size(); ++node) {
    const Model::Entry& entry = network_.model().nodes()[node];
    ProfileLayer layer;
    layer.name = entry.name;
    layer.type = entry.layer->type();
    layer.macs = entry.layer->macs(network_.model().input_shapes(entry));
    layer.forward = layers_[node].forward.median();
    layer.backward = layers_[node].backward.median();
    layer.steps = layers_[node].backward.steps;
    profile.layers.push_back(std::move(layer));
  }
  return profile;
}

}  // namespace duplex::tools
