#include "tools/prediction/part_costs.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"

namespace duplex::tools {

void MeasuredLine::add(double x, double y) {
  const auto place =
      std::lower_bound(points_.begin(), points_.end(), x,
                       [](const std::pair<double, double>& p, double at) { return p.first < at; });
  if (place != points_.end() && place->first == x)
    place->second = y;
  else
    points_.insert(place, {x, y});
}

double MeasuredLine::at(double x) const {
  if (points_.empty()) return 0.0;
  const auto [first, least] = points_.front();
  const double proportional = least * x / first;
  if (points_.size() == 1) return proportional;
  std::size_t next = 1;
  while (next + 1 < points_.size() && points_[next].first < x) ++next;
  const auto [x0, y0] = points_[next - 1];
  const auto [x1, y1] = points_[next];
  const double slope = (y1 - y0) / (x1 - x0);
  if (x > x1) return y1 + std::max(slope, 0.0) * (x - x1);
  const double y = y0 + slope * (x - x0);
  return x < first ? std::max(y, proportional) : y;
}

PartCosts::PartCosts(const Model& model, const LayerTimes& times, std::int64_t batch,
                     const std::vector<PartProfile>& parts, const std::string& path)
    : layers_(model.nodes().size()) {
  std::map<std::string, std::size_t> nodes;
  for (std::size_t node = 0; node < model.nodes().size(); ++node) {
    const Model::Entry& entry = model.nodes()[node];
    nodes[entry.name] = node;
    channels_.push_back(entry.shape.c());
    Lines& lines = layers_[node][channels_.back()];
    lines.forward.add(static_cast<double>(batch), times.forward[node]);
    lines.backward.add(static_cast<double>(batch), times.backward[node]);
  }
  double adding = 0.0;
  for (const PartProfile& part : parts) {
    const auto damaged = [&](const std::string& what) {
      throw Error(path + ": the part of " + std::to_string(part.samples) + " samples, cut over " +
                  std::to_string(part.ranks) + " ranks, " + what);
    };
    if (part.samples < 1 || part.ranks < 1) damaged("has none");
    const auto samples = static_cast<double>(part.samples);
    for (const PartProfileLayer& layer : part.layers) {
      const auto found = nodes.find(layer.name);
      if (found == nodes.end()) damaged("has a layer that is not the network's: " + layer.name);
      if (layer.channels < 1 || layer.channels > channels_[found->second])
        damaged("has not so many channels of " + layer.name);
      Lines& lines = layers_[found->second][layer.channels];
      lines.forward.add(samples, layer.forward);
      lines.backward.add(samples, layer.backward);
    }
    for (const PartProfileEdges& edges : part.edges) {
      if (edges.layers < 1 || edges.bytes < 1) damaged("has no bytes of " + edges.type);
      const auto count = static_cast<double>(edges.layers);
      Lines& lines = edges_[edges.type];
      lines.forward.add(static_cast<double>(edges.bytes) / count, edges.forward / count);
      lines.backward.add(static_cast<double>(edges.bytes) / count, edges.backward / count);
    }
    adding += part.adding;
  }
  if (!parts.empty()) adding_ = adding / static_cast<double>(parts.size());
}

Seconds PartCosts::layer(std::size_t node, std::int64_t samples, std::int64_t channels) const {
  MeasuredLine forward, backward;
  for (const auto& [its, lines] : layers_[node]) {
    forward.add(static_cast<double>(its), lines.forward.at(static_cast<double>(samples)));
    backward.add(static_cast<double>(its), lines.backward.at(static_cast<double>(samples)));
  }
  const auto x = static_cast<double>(channels);
  return {forward.at(x), backward.at(x)};
}

Seconds PartCosts::edge(const std::string& type, std::int64_t bytes) const {
  const auto found = edges_.find(type);
  if (found == edges_.end()) return {};
  const auto x = static_cast<double>(bytes);
  return {found->second.forward.at(x), found->second.backward.at(x)};
}

double PartCosts::whole(std::int64_t samples) const {
  double sum = 0.0;
  for (std::size_t node = 0; node < layers_.size(); ++node) {
    const Seconds its = layer(node, samples, channels_[node]);
    sum += its.forward + its.backward;
  }
  return sum;
}

}  // namespace duplex::tools
