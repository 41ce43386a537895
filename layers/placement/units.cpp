#include "layers/placement/units.h"

#include <algorithm>
#include <utility>

#include "layers/kinds/conv.h"
#include "layers/kinds/join.h"
#include "layers/plan/backward_plan.h"

namespace duplex {
namespace {

/// Returns true if a layer only puts its inputs' channels elsewhere.
bool rearranges(const Layer& layer) {
  return dynamic_cast<const ConcatLayer*>(&layer) != nullptr ||
         dynamic_cast<const PadChannelsLayer*>(&layer) != nullptr;
}

/// Returns true if each channel of a layer's output depends on the same channel of this input
/// alone.
bool works_by_channel(const Layer& layer, const std::vector<Shape>& x, std::int64_t channels,
                      std::size_t input) {
  if (x[input].c() != channels) return false;
  for (const Channels& one : {Channels{0, 1}, Channels{channels - 1, channels}}) {
    const auto read = layer.reads(x, one);
    if (!read || (*read)[input] != one) return false;
  }
  return true;
}

/// A convolution in which each channel is a group (depthwise) works by channel, and binds none.
std::int64_t groups_of(const Layer& layer, std::int64_t channels) {
  const auto* conv = dynamic_cast<const ConvLayer*>(&layer);
  if (conv == nullptr || conv->options().groups == channels) return 1;
  return conv->options().groups;
}

}  // namespace

Units::Units(Model model) : model_(std::move(model)), unit_of_(model_.nodes().size(), -1) {
  const std::vector<bool> depends = depends_on_parameters(model_);
  std::vector<int> readers(model_.nodes().size(), 0);
  for (const Model::Entry& entry : model_.nodes())
    for (const Model::Node input : entry.inputs) ++readers[static_cast<std::size_t>(input)];
  for (std::size_t node = 1; node < model_.nodes().size(); ++node) {
    const Model::Entry& entry = model_.nodes()[node];
    if (rearranges(*entry.layer)) continue;
    const std::vector<Shape> x = model_.input_shapes(entry);
    // The unit that it belongs to is that of the latest input which nobody else reads.
    int joined = -1;
    for (std::size_t i = 0; i < entry.inputs.size(); ++i) {
      const int unit = unit_of_[static_cast<std::size_t>(entry.inputs[i])];
      if (unit >= 0 && readers[static_cast<std::size_t>(entry.inputs[i])] == 1 &&
          works_by_channel(*entry.layer, x, entry.shape.c(), i))
        joined = std::max(joined, unit);
    }
    if (joined < 0) {
      joined = static_cast<int>(units_.size());
      Unit unit;
      unit.name = entry.name;
      unit.channels = entry.shape.c();
      units_.push_back(unit);
    }
    Unit& unit = units_[static_cast<std::size_t>(joined)];
    unit_of_[node] = joined;
    unit.layers.push_back(static_cast<Model::Node>(node));
    unit.groups = std::max(unit.groups, groups_of(*entry.layer, entry.shape.c()));
    unit.whole = unit.whole || !entry.layer->reads(x, {0, entry.shape.c()});
    unit.macs += entry.layer->macs(x);
    for (const ParameterSpec& spec : model_.parameters(entry))
      if (spec.trained) unit.parameters += spec.shape.elements();
    unit.channel_bytes = 4 * entry.shape.h() * entry.shape.w();
    unit.activations += entry.shape.elements();
    unit.gradient = depends[node];
  }
  // A unit that has taken in an addition may read one that began later: the last layers are in
  // forward order.
  std::sort(units_.begin(), units_.end(),
            [](const Unit& a, const Unit& b) { return a.layers.back() < b.layers.back(); });
  for (std::size_t unit = 0; unit < units_.size(); ++unit)
    for (const Model::Node node : units_[unit].layers)
      unit_of_[static_cast<std::size_t>(node)] = static_cast<int>(unit);
}

std::vector<Channels> channel_blocks(const Unit& unit, std::int64_t most) {
  const std::int64_t count = unit.whole ? 1 : std::clamp<std::int64_t>(most, 1, unit.channels);
  const std::int64_t run = unit.channels / unit.groups;  // The channels of a group.
  std::vector<Channels> blocks;
  if (count < unit.groups) {
    for (std::int64_t i = 0; i < count; ++i)
      blocks.push_back({unit.groups * i / count * run, unit.groups * (i + 1) / count * run});
    return blocks;
  }
  const std::int64_t parts = count / unit.groups;
  for (std::int64_t group = 0; group < unit.groups; ++group)
    for (std::int64_t part = 0; part < parts; ++part)
      blocks.push_back({group * run + run * part / parts, group * run + run * (part + 1) / parts});
  return blocks;
}

std::vector<MapPart> Units::reads(std::size_t unit, const Channels& channels) const {
  std::vector<MapPart> read;
  for (const Model::Node node : units_[unit].layers) {
    const Model::Entry& entry = model_.entry(node);
    const std::vector<Shape> x = model_.input_shapes(entry);
    const auto wanted = entry.layer->reads(x, channels);
    for (std::size_t i = 0; i < x.size(); ++i) {
      if (unit_of(entry.inputs[i]) == static_cast<int>(unit)) continue;
      for (const MapPart& part :
           parts_of(entry.inputs[i], wanted ? (*wanted)[i] : Channels{0, x[i].c()}))
        if (part.unit != MapPart::images) read.push_back(part);
    }
  }
  return read;
}

std::vector<MapPart> Units::parts_of(Model::Node node, const Channels& channels) const {
  std::vector<MapPart> parts;
  read_node(node, channels, channels.first, parts);
  return parts;
}

void Units::read_node(Model::Node node, const Channels& channels, std::int64_t at,
                      std::vector<MapPart>& parts) const {
  if (channels.count() == 0) return;
  const int unit = unit_of(node);
  if (unit >= 0 || node == model_.input()) {
    parts.push_back({unit >= 0 ? unit : MapPart::images, channels, at});
    return;
  }
  // A layer that rearranges puts its inputs' channels in a row, and zeros behind them.
  const Model::Entry& entry = model_.entry(node);
  const auto wanted = entry.layer->reads(model_.input_shapes(entry), channels);
  for (std::size_t i = 0; wanted && i < entry.inputs.size(); ++i) {
    read_node(entry.inputs[i], (*wanted)[i], at, parts);
    at += (*wanted)[i].count();
  }
}

}  // namespace duplex
