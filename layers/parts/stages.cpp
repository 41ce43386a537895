#include "layers/parts/stages.h"

#include <algorithm>
#include <string>

#include "layers/parts/crossing.h"
#include "layers/plan/backward_plan.h"

namespace duplex {

Stages::Stages(const Units& units, const std::vector<int>& stage_of, int stages,
               std::int64_t samples)
    : units_(units),
      whole_(units.model()),
      samples_(samples),
      stages_(stages),
      here_(static_cast<std::size_t>(stages), std::vector<Here>(whole_.nodes().size())) {
  const auto stage = [&](Node node) {
    return stage_of[static_cast<std::size_t>(units_.unit_of(node))];
  };
  const int count = static_cast<int>(whole_.nodes().size());
  for (Node node = 1; node < count; ++node)
    if (units_.unit_of(node) >= 0) here(stage(node), node).made = true;
  // An earlier stage may have put together, or passed on, a map that a stage needs.
  for (int each = 0; each < stages_; ++each)
    for (Node node = 1; node < count; ++node)
      if (units_.unit_of(node) >= 0 && stage(node) == each)
        for (const Node input : whole_.entry(node).inputs) need(input, each);
  add_transfers();
}

/// Brings a map onto a stage.
void Stages::need(Node node, int stage) {
  if (node == whole_.input() || here(stage, node).there()) return;
  for (int before = stage; before-- > 0;) {
    if (!here(before, node).there()) continue;
    here(stage, node).from = before;
    return;
  }
  here(stage, node).made = true;  // A concatenation, or channels of zeros behind others.
  for (const Node input : whole_.entry(node).inputs) need(input, stage);
}

void Stages::add_transfers() {
  const std::vector<bool> reaches = reaches_loss(whole_), depends = depends_on_parameters(whole_);
  const int count = static_cast<int>(whole_.nodes().size());
  // By stage and node: something there, or on a stage behind it, gives a gradient to the map.
  std::vector<std::vector<bool>> gradient(here_.size(),
                                          std::vector<bool>(whole_.nodes().size(), false));
  for (int stage = stages_; stage-- > 0;) {
    std::vector<bool>& gives = gradient[static_cast<std::size_t>(stage)];
    for (Node node = count; node-- > 1;) {
      const auto n = static_cast<std::size_t>(node);
      const bool own = units_.unit_of(node) >= 0 && here(stage, node).made;
      if (here(stage, node).made && (own ? bool{reaches[n]} : bool{gives[n]}))
        for (const Node input : whole_.entry(node).inputs)
          gives[static_cast<std::size_t>(input)] = true;
    }
    for (Node node = 1; node < count; ++node) {
      const Here& it = here(stage, node);
      if (it.from >= 0 && gives[static_cast<std::size_t>(node)])
        gradient[static_cast<std::size_t>(it.from)][static_cast<std::size_t>(node)] = true;
    }
  }
  for (Node node = 1; node < count; ++node) {
    const Shape& shape = whole_.shape(node);
    const Region all{0, samples_, {0, shape.c()}};
    for (int stage = 0; stage < stages_; ++stage) {
      if (here(stage, node).from < 0) continue;
      const auto n = static_cast<std::size_t>(node);
      transfers_.push_back({node, all, here(stage, node).from, stage,
                            all.elements(shape.h() * shape.w()),
                            depends[n] && gradient[static_cast<std::size_t>(stage)][n]});
    }
  }
}

/// Returns the last node of a stage that reads a map there, or the map itself.
Model::Node Stages::last_reader(Node node, int stage) const {
  Node last = node;
  for (Node reader = node + 1; reader < static_cast<int>(whole_.nodes().size()); ++reader) {
    const std::vector<Node>& inputs = whole_.entry(reader).inputs;
    if (here(stage, reader).made && std::count(inputs.begin(), inputs.end(), node) > 0)
      last = reader;
  }
  return last;
}

NetworkPart Stages::part(int stage) const {
  NetworkPart part{Model(whole_.title(), whole_.shape(whole_.input())), 0, 1, false};
  part.model.known_as(whole_.known_as());
  part.model.smooth_labels(whole_.label_smoothing());
  const auto network = std::make_shared<const Model>(whole_);
  std::vector<Node> nodes(whole_.nodes().size(), -1);
  nodes[0] = part.model.input();
  PartOf all;
  all.samples = samples_;
  const auto add = [&](Node whole, const std::string& name, std::shared_ptr<const Layer> layer,
                       const std::vector<Node>& inputs) {
    part.model.training_only(whole_.entry(whole).training_only);
    return part.model.layer(name, std::move(layer), inputs, all);
  };
  for (Node node = 0; node < static_cast<int>(whole_.nodes().size()); ++node) {
    const Model::Entry& entry = whole_.entry(node);
    const auto n = static_cast<std::size_t>(node);
    for (std::size_t i = 0; i < transfers_.size(); ++i) {
      const MapTransfer& each = transfers_[i];
      if (each.node == node && each.to == stage)
        nodes[n] = add(node, "receive " + entry.name,
                       std::make_shared<ReceiveLayer>(i, entry.shape, each.gradient,
                                                      ReceiveLayer::Origin{network, node}),
                       {});
    }
    if (here(stage, node).made) {
      std::vector<Node> inputs;
      for (const Node input : entry.inputs) {
        inputs.push_back(nodes[static_cast<std::size_t>(input)]);
        if (input == whole_.input()) part.reads = true;
      }
      part.model.block(entry.block == entry.name ? "" : entry.block);
      nodes[n] =
          add(node, entry.name.substr(entry.block == entry.name ? 0 : entry.block.size() + 1),
              entry.layer, inputs);
      part.model.block("");
    }
    for (std::size_t i = 0; i < transfers_.size(); ++i) {
      const MapTransfer& each = transfers_[i];
      if (each.from != stage || last_reader(each.node, stage) != node) continue;
      const std::vector<SendLayer::Piece> pieces{{i, each.region, each.gradient}};
      add(each.node, "send " + whole_.entry(each.node).name,
          std::make_shared<SendLayer>(each.region, pieces),
          {nodes[static_cast<std::size_t>(each.node)]});
    }
  }
  if (part.reads) part.images = samples_;
  return part;
}

}  // namespace duplex
