#include "tools/partition/refinement.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <queue>

namespace duplex::tools {
namespace {

using Vertex = Hypergraph::Vertex;
using Net = Hypergraph::Net;

/// A pass ends when so many moves in a row have brought nothing.
constexpr std::size_t patience = 300;
constexpr int most_passes = 12;

/// The parts of all vertices, and what moving each of them would bring.
class Assignment {
 public:
  Assignment(const Hypergraph& graph, const std::vector<std::int64_t>& limits, Parts& parts)
      : graph_(graph),
        limits_(limits),
        parts_(parts),
        count_(limits.size()),
        weights_(part_weights(graph, parts, static_cast<int>(count_))),
        pins_in_(graph.nets() * count_, 0),
        leaving_(graph.vertices(), 0),
        entering_(graph.vertices() * count_, 0) {
    for (std::size_t p = 0; p < count_; ++p) overweight_ += std::max<std::int64_t>(excess(p), 0);
    for (Net net = 0; net < graph.nets(); ++net)
      for (const Vertex pin : graph.pins(net)) ++pins_in(net, part(pin));
    for (Vertex v = 0; v < graph.vertices(); ++v) {
      for (const Net net : graph.nets_of(v)) {
        if (pins_in(net, part(v)) == 1) leaving_[v] += graph.cost(net);
        for (std::size_t p = 0; p < count_; ++p)
          if (pins_in(net, p) == 0) entering(v, p) += graph.cost(net);
      }
    }
  }

  std::size_t part(Vertex vertex) const { return static_cast<std::size_t>(parts_[vertex]); }
  std::size_t count() const { return count_; }
  std::int64_t excess(std::size_t part) const { return weights_[part] - limits_[part]; }
  /// Returns by how much all parts together are beyond their limits.
  std::int64_t overweight() const { return overweight_; }
  /// Returns true if a part has room for the vertex. `loosely`: it may be beyond its limit then, so
  /// that another one leaves it afterwards, and both have changed places.
  bool fits(Vertex vertex, std::size_t part, bool loosely) const {
    return loosely ? weights_[part] <= limits_[part]
                   : weights_[part] + graph_.weight(vertex) <= limits_[part];
  }
  /// Returns by how much the cost falls when the vertex moves there.
  std::int64_t gain(Vertex vertex, std::size_t to) const {
    return leaving_[vertex] - entering_[vertex * count_ + to];
  }
  /// Returns true if some net of it reaches into another part, so that a move there may be good.
  bool is_at_border(Vertex vertex) const {
    std::int64_t all = 0;
    for (const Net net : graph_.nets_of(vertex)) all += graph_.cost(net);
    for (std::size_t p = 0; p < count_; ++p)
      if (p != part(vertex) && entering_[vertex * count_ + p] < all) return true;
    return false;
  }
  struct Target {
    std::size_t part = 0;
    std::int64_t gain = 0;
    bool found = false;
  };
  /// The best part to move to that has room; of equal ones the lightest for its limit.
  Target best(Vertex vertex, bool loosely) const {
    Target best;
    for (std::size_t p = 0; p < count_; ++p) {
      if (p == part(vertex) || !fits(vertex, p, loosely)) continue;
      const std::int64_t gained = gain(vertex, p);
      if (!best.found || gained > best.gain ||
          (gained == best.gain && excess(p) < excess(best.part)))
        best = {p, gained, true};
    }
    return best;
  }

  /// Moves a vertex, and calls touched(other) for others whose gains have changed.
  template <class Touched>
  void move(Vertex vertex, std::size_t to, const Touched& touched) {
    const std::size_t from = part(vertex);
    weigh(from, -graph_.weight(vertex));
    weigh(to, graph_.weight(vertex));
    parts_[vertex] = static_cast<int>(to);
    std::int64_t leaving = 0;
    for (const Net net : graph_.nets_of(vertex)) {
      const std::int64_t cost = graph_.cost(net);
      const std::uint32_t left = --pins_in(net, from), there = ++pins_in(net, to);
      if (there == 1) leaving += cost;
      const bool all = left == 0 || there == 1;  // Else one other pin's gain changes, or none.
      if (!all && left > 1 && there > 2) continue;
      for (const Vertex pin : graph_.pins(net)) {
        if (left == 0) entering(pin, from) += cost;
        if (there == 1) entering(pin, to) -= cost;
        if (pin == vertex) continue;
        const bool alone = left == 1 && part(pin) == from, met = there == 2 && part(pin) == to;
        if (alone) leaving_[pin] += cost;
        if (met) leaving_[pin] -= cost;
        if (all || alone || met) touched(pin);
      }
    }
    leaving_[vertex] = leaving;
  }

 private:
  void weigh(std::size_t part, std::int64_t more) {
    overweight_ -= std::max<std::int64_t>(excess(part), 0);
    weights_[part] += more;
    overweight_ += std::max<std::int64_t>(excess(part), 0);
  }
  std::uint32_t& pins_in(Net net, std::size_t part) { return pins_in_[net * count_ + part]; }
  std::int64_t& entering(Vertex vertex, std::size_t part) {
    return entering_[vertex * count_ + part];
  }

  const Hypergraph& graph_;
  const std::vector<std::int64_t>& limits_;
  Parts& parts_;
  const std::size_t count_;
  std::vector<std::int64_t> weights_;
  std::int64_t overweight_ = 0;
  std::vector<std::uint32_t> pins_in_;  ///< A net has so many, by part.
  std::vector<std::int64_t> leaving_;   ///< Cost of nets that a vertex alone brings into its part.
  std::vector<std::int64_t> entering_;  ///< By part: cost of a vertex' nets that are not there.
};

/// A vertex that may move, with what that brings when it was put into the queue.
struct Candidate {
  std::int64_t gain = 0;
  std::uint64_t order = 0;  ///< The last of equal ones comes first.
  Vertex vertex = 0;
  bool operator<(const Candidate& other) const {
    return gain != other.gain ? gain < other.gain : order < other.order;
  }
};

/// Moves each vertex at most once, the best first, also where the cost rises for a while, and takes
/// back what did not pay in the end, or left parts further beyond their limits. Returns whether
/// anything has become better.
bool pass(const Hypergraph& graph, Assignment& assignment, bool loosely, Draws& draws) {
  std::priority_queue<Candidate> queue;
  std::vector<bool> moved(graph.vertices(), false);
  std::vector<std::int64_t> queued(graph.vertices(), std::numeric_limits<std::int64_t>::min());
  std::uint64_t order = 0;
  const auto put = [&](Vertex vertex) {
    const Assignment::Target target = assignment.best(vertex, loosely);
    if (!target.found || target.gain == queued[vertex]) return;
    queued[vertex] = target.gain;
    queue.push({target.gain, order++, vertex});
  };
  std::vector<Vertex> all(graph.vertices());
  std::iota(all.begin(), all.end(), Vertex{0});
  draws.shuffle(all);
  for (const Vertex vertex : all)
    if (assignment.is_at_border(vertex)) put(vertex);

  struct Move {
    Vertex vertex;
    std::size_t from;
  };
  std::vector<Move> moves;
  std::size_t kept = 0;
  std::int64_t sum = 0, best = 0, overweight = assignment.overweight();
  const std::size_t wait = patience + graph.vertices() / 20;
  while (!queue.empty() && moves.size() - kept < wait) {
    const Candidate candidate = queue.top();
    queue.pop();
    const Vertex vertex = candidate.vertex;
    if (moved[vertex] || candidate.gain != queued[vertex]) continue;
    const Assignment::Target target = assignment.best(vertex, loosely);
    if (!target.found || target.gain != candidate.gain) {
      queued[vertex] = std::numeric_limits<std::int64_t>::min();
      put(vertex);
      continue;
    }
    moved[vertex] = true;
    moves.push_back({vertex, assignment.part(vertex)});
    sum += target.gain;
    assignment.move(vertex, target.part, [&](Vertex other) {
      if (!moved[other]) put(other);
    });
    if (assignment.overweight() < overweight ||
        (assignment.overweight() == overweight && sum > best)) {
      overweight = assignment.overweight();
      best = sum;
      kept = moves.size();
    }
  }
  while (moves.size() > kept) {
    assignment.move(moves.back().vertex, moves.back().from, [](Vertex) {});
    moves.pop_back();
  }
  return kept > 0;
}

/// Empties parts that are beyond their limits, by the moves that cost least for their weight.
void rebalance(const Hypergraph& graph, Assignment& assignment, Draws& draws) {
  std::vector<Vertex> all(graph.vertices());
  std::iota(all.begin(), all.end(), Vertex{0});
  for (bool moves = true; moves;) {
    moves = false;
    draws.shuffle(all);
    std::vector<std::pair<double, Vertex>> candidates;
    for (const Vertex vertex : all) {
      if (assignment.excess(assignment.part(vertex)) <= 0 || graph.weight(vertex) == 0) continue;
      const Assignment::Target target = assignment.best(vertex, false);
      if (target.found)
        candidates.emplace_back(
            -static_cast<double>(target.gain) / static_cast<double>(graph.weight(vertex)), vertex);
    }
    std::stable_sort(candidates.begin(), candidates.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    // A move changes what others bring, so a part of them only is made before all are seen anew.
    const std::size_t most = candidates.size() / 8 + 1;
    std::size_t made = 0;
    for (const auto& [price, vertex] : candidates) {
      if (made == most || assignment.excess(assignment.part(vertex)) <= 0) continue;
      const Assignment::Target target = assignment.best(vertex, false);
      if (!target.found) continue;
      assignment.move(vertex, target.part, [](Vertex) {});
      moves = true;
      ++made;
    }
  }
}

}  // namespace

std::int64_t refine(const Hypergraph& graph, const std::vector<std::int64_t>& limits, Parts& parts,
                    Draws& draws) {
  Assignment assignment(graph, limits, parts);
  rebalance(graph, assignment, draws);
  // Places are changed only where no move within the limits helps.
  bool loosely = false;
  for (int i = 0; i < most_passes; ++i) {
    const bool better = pass(graph, assignment, loosely, draws);
    if (!better && loosely) break;
    loosely = !better;
  }
  return connectivity_cost(graph, parts, static_cast<int>(limits.size()));
}

std::int64_t overweight(const Hypergraph& graph, const std::vector<std::int64_t>& limits,
                        const Parts& parts) {
  const std::vector<std::int64_t> weights =
      part_weights(graph, parts, static_cast<int>(limits.size()));
  std::int64_t sum = 0;
  for (std::size_t p = 0; p < limits.size(); ++p)
    sum += std::max<std::int64_t>(weights[p] - limits[p], 0);
  return sum;
}

}  // namespace duplex::tools
