#include "tools/partition/coarsening.h"

#include <numeric>

namespace duplex::tools {
namespace {

using Vertex = Hypergraph::Vertex;

constexpr std::size_t large_net =
    512;  ///< Pins of a net that says little about which belong together.
constexpr double least_shrinkage = 0.97;  ///< A level that is not smaller than that is the last.

/// Clusters of vertices, one coarsening step.
class Clustering {
 public:
  Clustering(const Hypergraph& graph, std::int64_t heaviest, const Parts* parts)
      : graph_(graph),
        heaviest_(heaviest),
        parts_(parts),
        leader_(graph.vertices()),
        leads_(graph.vertices(), false),
        weights_(graph.vertices()),
        ratings_(graph.vertices(), 0.0) {
    std::iota(leader_.begin(), leader_.end(), Vertex{0});
    for (Vertex v = 0; v < graph.vertices(); ++v) weights_[v] = graph.weight(v);
  }

  /// Joins a vertex to the cluster that it is connected with most, unless it has others already.
  void join(Vertex vertex) {
    if (leader_[vertex] != vertex || leads_[vertex]) return;
    rate(vertex);
    Vertex best = vertex;
    double best_rating = 0.0;
    for (const Vertex leader : rated_) {
      const double rating = ratings_[leader];
      ratings_[leader] = 0.0;
      if (leader == vertex || weights_[leader] + graph_.weight(vertex) > heaviest_) continue;
      if (rating > best_rating || (rating == best_rating && weights_[leader] < weights_[best])) {
        best = leader;
        best_rating = rating;
      }
    }
    if (best == vertex) return;
    leader_[vertex] = best;
    weights_[best] += graph_.weight(vertex);
    leads_[best] = true;
  }

  /// Gives clusters numbers; returns how many there are.
  std::size_t number(std::vector<Vertex>& clusters) const {
    constexpr Vertex none = ~Vertex{0};
    std::vector<Vertex> numbers(leader_.size(), none);
    clusters.resize(leader_.size());
    Vertex count = 0;
    for (std::size_t v = 0; v < leader_.size(); ++v) {
      Vertex& number = numbers[leader_[v]];
      if (number == none) number = count++;
      clusters[v] = number;
    }
    return count;
  }

 private:
  void rate(Vertex vertex) {
    rated_.clear();
    for (const Hypergraph::Net net : graph_.nets_of(vertex)) {
      const auto pins = graph_.pins(net);
      if (pins.size() > large_net) continue;
      const double rating =
          static_cast<double>(graph_.cost(net)) / static_cast<double>(pins.size() - 1);
      for (const Vertex pin : pins) {
        if (parts_ != nullptr && (*parts_)[pin] != (*parts_)[vertex]) continue;
        const Vertex leader = leader_[pin];
        if (ratings_[leader] == 0.0) rated_.push_back(leader);
        ratings_[leader] += rating;
      }
    }
  }

  const Hypergraph& graph_;
  const std::int64_t heaviest_;
  const Parts* parts_;
  std::vector<Vertex>
      leader_;  ///< The vertex that leads the cluster of a vertex; it has joined no other.
  std::vector<bool> leads_;            ///< Others have joined it.
  std::vector<std::int64_t> weights_;  ///< The cluster that a vertex leads has them.
  std::vector<double> ratings_;
  std::vector<Vertex> rated_;
};

}  // namespace

std::vector<Level> coarsen(const Hypergraph& graph, std::size_t enough, std::int64_t heaviest,
                           const Parts* parts, Draws& draws) {
  std::vector<Level> levels;
  const Hypergraph* finest = &graph;
  Parts lifted;
  while (finest->vertices() > enough) {
    std::vector<Vertex> order(finest->vertices());
    std::iota(order.begin(), order.end(), Vertex{0});
    draws.shuffle(order);
    Clustering clustering(*finest, heaviest, parts);
    for (const Vertex vertex : order) clustering.join(vertex);
    Level level;
    const std::size_t count = clustering.number(level.clusters);
    if (static_cast<double>(count) > least_shrinkage * static_cast<double>(finest->vertices()))
      break;
    level.graph = finest->contracted(level.clusters, count);
    if (parts != nullptr) {
      lifted = lift(*parts, level);
      parts = &lifted;
    }
    levels.push_back(std::move(level));
    finest = &levels.back().graph;
  }
  return levels;
}

Parts project(const Parts& coarse, const std::vector<Vertex>& clusters) {
  Parts fine(clusters.size());
  for (std::size_t v = 0; v < clusters.size(); ++v) fine[v] = coarse[clusters[v]];
  return fine;
}

Parts lift(const Parts& fine, const Level& level) {
  Parts coarse(level.graph.vertices());
  for (std::size_t v = 0; v < fine.size(); ++v) coarse[level.clusters[v]] = fine[v];
  return coarse;
}

}  // namespace duplex::tools
