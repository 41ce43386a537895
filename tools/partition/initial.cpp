#include "tools/partition/initial.h"

#include <algorithm>
#include <numeric>
#include <queue>
#include <utility>

#include "tools/partition/refinement.h"

namespace duplex::tools {
namespace {

using Vertex = Hypergraph::Vertex;

constexpr int tries = 8;

/// Grows part 0 from one vertex: the one that is best connected with it follows, until it has
/// `wanted` of the weight. All others are part 1.
Parts grow(const Hypergraph& graph, std::int64_t wanted, Draws& draws) {
  Parts parts(graph.vertices(), 1);
  std::vector<double> pull(graph.vertices(), 0.0);
  std::priority_queue<std::pair<double, Vertex>> queue;
  std::vector<Vertex> order(graph.vertices());
  std::iota(order.begin(), order.end(), Vertex{0});
  draws.shuffle(order);
  std::size_t fresh = 0;
  for (std::int64_t weight = 0; weight < wanted;) {
    Vertex vertex = 0;
    if (queue.empty()) {
      while (fresh < order.size() && parts[order[fresh]] == 0) ++fresh;
      if (fresh == order.size()) break;
      vertex = order[fresh];
    } else {
      const auto [pulled, next] = queue.top();
      queue.pop();
      if (parts[next] == 0 || pulled != pull[next]) continue;
      vertex = next;
    }
    if (weight + graph.weight(vertex) > wanted + graph.weight(vertex) / 2 && weight > 0) break;
    parts[vertex] = 0;
    weight += graph.weight(vertex);
    for (const Hypergraph::Net net : graph.nets_of(vertex)) {
      const auto pins = graph.pins(net);
      const double part =
          static_cast<double>(graph.cost(net)) / static_cast<double>(pins.size() - 1);
      for (const Vertex pin : pins) {
        if (parts[pin] == 0) continue;
        pull[pin] += part;
        queue.push({pull[pin], pin});
      }
    }
  }
  return parts;
}

/// Part 0 has `wanted` of the weight, drawn from all over.
Parts scatter(const Hypergraph& graph, std::int64_t wanted, Draws& draws) {
  Parts parts(graph.vertices(), 1);
  std::vector<Vertex> order(graph.vertices());
  std::iota(order.begin(), order.end(), Vertex{0});
  draws.shuffle(order);
  std::int64_t weight = 0;
  for (const Vertex vertex : order) {
    if (weight + graph.weight(vertex) > wanted) continue;
    parts[vertex] = 0;
    weight += graph.weight(vertex);
  }
  return parts;
}

/// The vertices of one part as a hypergraph of their own, with the nets as far as they lie there.
Hypergraph part_of(const Hypergraph& graph, const Parts& parts, int part,
                   std::vector<Vertex>& members) {
  Hypergraph own;
  std::vector<Vertex> numbers(graph.vertices());
  members.clear();
  for (Vertex v = 0; v < graph.vertices(); ++v) {
    if (parts[v] != part) continue;
    numbers[v] = own.add_vertex(graph.weight(v));
    members.push_back(v);
  }
  for (Hypergraph::Net net = 0; net < graph.nets(); ++net) {
    std::vector<Vertex> pins;
    for (const Vertex pin : graph.pins(net))
      if (parts[pin] == part) pins.push_back(numbers[pin]);
    own.add_net(std::move(pins), graph.cost(net));
  }
  own.tidy();
  return own;
}

Parts best_half(const Hypergraph& graph, const std::vector<std::int64_t>& limits, Draws& draws) {
  const double share = static_cast<double>(limits[0]) / static_cast<double>(limits[0] + limits[1]);
  const auto wanted = static_cast<std::int64_t>(share * static_cast<double>(graph.total_weight()));
  Parts best;
  std::pair<std::int64_t, std::int64_t> best_cost;
  for (int i = 0; i < tries; ++i) {
    Parts parts = i % 4 == 3 ? scatter(graph, wanted, draws) : grow(graph, wanted, draws);
    const std::int64_t cost = refine(graph, limits, parts, draws);
    const std::pair<std::int64_t, std::int64_t> both(overweight(graph, limits, parts), cost);
    if (best.empty() || both < best_cost) {
      best = std::move(parts);
      best_cost = both;
    }
  }
  return best;
}

}  // namespace

Parts bisect(const Hypergraph& graph, const std::vector<std::int64_t>& limits, Draws& draws) {
  if (limits.size() == 1) return Parts(graph.vertices(), 0);
  const auto middle = limits.begin() + static_cast<std::ptrdiff_t>(limits.size() / 2);
  const std::vector<std::int64_t> sides[2] = {{limits.begin(), middle}, {middle, limits.end()}};
  std::vector<std::int64_t> halves;
  for (const auto& side : sides)
    halves.push_back(std::accumulate(side.begin(), side.end(), std::int64_t{0}));
  // The room that limits leave is for all cuts to come, so that this one has a part of it.
  const std::int64_t slack = halves[0] + halves[1] - graph.total_weight();
  if (slack > 0 && limits.size() > 2) {
    for (std::size_t i = 0; i < 2; ++i) {
      const double share =
          static_cast<double>(halves[i]) / static_cast<double>(halves[0] + halves[1]);
      halves[i] -= static_cast<std::int64_t>(share * static_cast<double>(slack) / 2);
    }
  }
  const Parts half = best_half(graph, halves, draws);
  Parts parts(graph.vertices(), 0);
  for (int i = 0; i < 2; ++i) {
    std::vector<Vertex> members;
    const Hypergraph own = part_of(graph, half, i, members);
    const Parts inner = bisect(own, sides[i], draws);
    const int first = i == 0 ? 0 : static_cast<int>(sides[0].size());
    for (std::size_t v = 0; v < members.size(); ++v) parts[members[v]] = first + inner[v];
  }
  return parts;
}

}  // namespace duplex::tools
