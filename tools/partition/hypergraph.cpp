#include "tools/partition/hypergraph.h"

#include <algorithm>
#include <unordered_map>

namespace duplex::tools {
namespace {

std::uint64_t hash_of(const Hypergraph::Vertex* first, const Hypergraph::Vertex* last) {
  std::uint64_t hash = 0xCBF29CE484222325u;  // 64-bit FNV-1a, a vertex at a time.
  for (; first != last; ++first) hash = (hash ^ *first) * 0x100000001B3u;
  return hash;
}

}  // namespace

Hypergraph::Vertex Hypergraph::add_vertex(std::int64_t weight) {
  weights_.push_back(weight);
  total_weight_ += weight;
  return static_cast<Vertex>(weights_.size() - 1);
}

void Hypergraph::add_net(std::vector<Vertex> pins, std::int64_t cost) {
  std::sort(pins.begin(), pins.end());
  pins.erase(std::unique(pins.begin(), pins.end()), pins.end());
  if (pins.size() < 2 || cost == 0) return;
  pins_.insert(pins_.end(), pins.begin(), pins.end());
  pin_starts_.push_back(pins_.size());
  costs_.push_back(cost);
}

void Hypergraph::tidy() {
  std::unordered_multimap<std::uint64_t, Net> known;
  std::vector<std::int64_t> costs;
  std::vector<std::size_t> starts{0};
  std::vector<Vertex> pins;
  for (Net net = 0; net < nets(); ++net) {
    const Run<Vertex> own = this->pins(net);
    const std::uint64_t hash = hash_of(own.begin(), own.end());
    const auto [first, last] = known.equal_range(hash);
    const auto same = std::find_if(first, last, [&](const auto& other) {
      const Vertex* begin = pins.data() + starts[other.second];
      return own.size() == starts[other.second + 1] - starts[other.second] &&
             std::equal(own.begin(), own.end(), begin);
    });
    if (same != last) {
      costs[same->second] += costs_[net];
      continue;
    }
    known.emplace(hash, static_cast<Net>(costs.size()));
    pins.insert(pins.end(), own.begin(), own.end());
    starts.push_back(pins.size());
    costs.push_back(costs_[net]);
  }
  costs_ = std::move(costs);
  pin_starts_ = std::move(starts);
  pins_ = std::move(pins);

  net_starts_.assign(vertices() + 1, 0);
  for (const Vertex vertex : pins_) ++net_starts_[vertex + 1];
  for (std::size_t v = 0; v < vertices(); ++v) net_starts_[v + 1] += net_starts_[v];
  nets_.resize(pins_.size());
  std::vector<std::size_t> next(net_starts_.begin(), net_starts_.end() - 1);
  for (Net net = 0; net < nets(); ++net)
    for (const Vertex vertex : this->pins(net)) nets_[next[vertex]++] = net;
}

Hypergraph Hypergraph::contracted(const std::vector<Vertex>& clusters, std::size_t count) const {
  Hypergraph coarse;
  coarse.weights_.assign(count, 0);
  coarse.total_weight_ = total_weight_;
  for (std::size_t v = 0; v < vertices(); ++v) coarse.weights_[clusters[v]] += weights_[v];
  std::vector<Vertex> own;
  for (Net net = 0; net < nets(); ++net) {
    own.clear();
    for (const Vertex vertex : pins(net)) own.push_back(clusters[vertex]);
    coarse.add_net(own, costs_[net]);
  }
  coarse.tidy();
  return coarse;
}

std::string hmetis_text(const Hypergraph& graph) {
  std::string text =
      std::to_string(graph.nets()) + " " + std::to_string(graph.vertices()) + " 11\n";
  for (Hypergraph::Net net = 0; net < graph.nets(); ++net) {
    text += std::to_string(graph.cost(net));
    for (const Hypergraph::Vertex pin : graph.pins(net)) text += " " + std::to_string(pin + 1);
    text += "\n";
  }
  for (std::size_t v = 0; v < graph.vertices(); ++v)
    text += std::to_string(graph.weight(static_cast<Hypergraph::Vertex>(v))) + "\n";
  return text;
}

std::int64_t connectivity_cost(const Hypergraph& graph, const Parts& parts, int count) {
  std::int64_t sum = 0;
  std::vector<Hypergraph::Net> seen(static_cast<std::size_t>(count), ~Hypergraph::Net{0});
  for (Hypergraph::Net net = 0; net < graph.nets(); ++net) {
    std::int64_t lambda = 0;
    for (const Hypergraph::Vertex vertex : graph.pins(net)) {
      Hypergraph::Net& last = seen[static_cast<std::size_t>(parts[vertex])];
      if (last == net) continue;
      last = net;
      ++lambda;
    }
    sum += graph.cost(net) * (lambda - 1);
  }
  return sum;
}

std::vector<std::int64_t> part_weights(const Hypergraph& graph, const Parts& parts, int count) {
  std::vector<std::int64_t> weights(static_cast<std::size_t>(count), 0);
  for (std::size_t v = 0; v < graph.vertices(); ++v)
    weights[static_cast<std::size_t>(parts[v])] += graph.weight(static_cast<Hypergraph::Vertex>(v));
  return weights;
}

}  // namespace duplex::tools
