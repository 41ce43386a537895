// A hypergraph whose vertices are shared out among parts so that nets, which connect any number of
// vertices, reach into few parts.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace duplex::tools {

class Hypergraph {
 public:
  using Vertex = std::uint32_t;
  using Net = std::uint32_t;

  /// Vertices have numbers from 0 in the order in which they are added.
  Vertex add_vertex(std::int64_t weight);
  /// Adds a net, unless it has fewer than two different pins, or costs nothing. Nets with the same
  /// pins become one in tidy().
  void add_net(std::vector<Vertex> pins, std::int64_t cost);
  /// Joins nets with the same pins, and finds every vertex' nets. Call it after the last net.
  void tidy();

  std::size_t vertices() const { return weights_.size(); }
  std::size_t nets() const { return costs_.size(); }
  std::size_t all_pins() const { return pins_.size(); }  ///< All nets together have them.
  std::int64_t weight(Vertex vertex) const { return weights_[vertex]; }
  std::int64_t total_weight() const { return total_weight_; }
  std::int64_t cost(Net net) const { return costs_[net]; }

  template <class Item>
  struct Run {
    const Item *first, *last;
    const Item* begin() const { return first; }
    const Item* end() const { return last; }
    std::size_t size() const { return static_cast<std::size_t>(last - first); }
  };
  Run<Vertex> pins(Net net) const {
    return {pins_.data() + pin_starts_[net], pins_.data() + pin_starts_[net + 1]};
  }
  Run<Net> nets_of(Vertex vertex) const {
    return {nets_.data() + net_starts_[vertex], nets_.data() + net_starts_[vertex + 1]};
  }

  /// Returns the hypergraph in which vertices with the same number in `clusters`, which are from 0
  /// to count - 1, are one.
  Hypergraph contracted(const std::vector<Vertex>& clusters, std::size_t count) const;

 private:
  std::vector<std::int64_t> weights_, costs_;
  std::int64_t total_weight_ = 0;
  std::vector<std::size_t> pin_starts_{0}, net_starts_;
  std::vector<Vertex> pins_;
  std::vector<Net> nets_;
};

/// Returns it as a file of hMetis has it, which other partitioners read, too: nets with their costs
/// and pins, which count from 1, then the weights of the vertices.
std::string hmetis_text(const Hypergraph& graph);

/// The part of every vertex.
using Parts = std::vector<int>;

/// The sum over all nets of cost times (lambda - 1), where lambda is the number of parts that a net
/// has pins in.
std::int64_t connectivity_cost(const Hypergraph& graph, const Parts& parts, int count);

/// The weight of every part.
std::vector<std::int64_t> part_weights(const Hypergraph& graph, const Parts& parts, int count);

}  // namespace duplex::tools
