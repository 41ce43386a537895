#include "tools/partition/partitioner.h"

#include <algorithm>
#include <numeric>
#include <tuple>

#include "datasets/parallel.h"
#include "tools/partition/coarsening.h"
#include "tools/partition/initial.h"
#include "tools/partition/refinement.h"

namespace duplex::tools {
namespace {

constexpr int cycles = 3;  ///< Coarsenings and refinements of what has been found.
/// First partitions of so many pins, all together, take some seconds.
constexpr std::size_t pins_of_starts = 3'000'000;
constexpr std::size_t parents = 6;  ///< Partitions that are combined with each other.

/// Says how far a hypergraph is coarsened. No one way suits all, so that each start has another.
struct Coarsening {
  std::size_t vertices;   ///< For each part, of the coarsest hypergraph.
  std::int64_t heaviest;  ///< The heaviest vertex is a part's share, divided by this.
};
constexpr Coarsening coarsenings[] = {{60, 12}, {20, 6}, {60, 40}, {20, 3}};

bool is_better(const Partition& a, const Partition& b) {
  return std::tie(a.overweight, a.cost) < std::tie(b.overweight, b.cost);
}

class Multilevel {
 public:
  Multilevel(const Hypergraph& graph, const PartitionSpec& spec, std::uint64_t stream)
      : graph_(graph), limits_(spec.limits), draws_(spec.seed * 0x10001u + stream) {
    const Coarsening& coarsening = coarsenings[stream % std::size(coarsenings)];
    const auto parts = static_cast<std::int64_t>(limits_.size());
    enough_ = coarsening.vertices * limits_.size();
    heaviest_ = std::max<std::int64_t>(graph.total_weight() / (coarsening.heaviest * parts), 1);
  }

  Partition from_nothing() {
    const std::vector<Level> levels = coarsen(graph_, enough_, heaviest_, nullptr, draws_);
    Parts parts = bisect(levels.empty() ? graph_ : levels.back().graph, limits_, draws_);
    return improved(refined(levels, std::move(parts)));
  }
  Partition from(const Parts& seed) {
    Partition given = judged(seed);
    Partition better = improved(given);
    return is_better(better, given) ? better : given;
  }
  /// Coarsens what has the same part in both, and refines the better one from there: what they
  /// agree on stays together (recombination, Andre et al. 2018).
  Partition combined(const Partition& better, const Partition& other) {
    Parts both = better.parts;
    for (std::size_t v = 0; v < both.size(); ++v)
      both[v] = both[v] * static_cast<int>(limits_.size()) + other.parts[v];
    return refined_within(both, better);
  }
  /// Coarsens within parts and refines again, as long as that helps.
  Partition improved(Partition best) {
    for (int i = 0; i < cycles; ++i) best = refined_within(best.parts, best);
    return best;
  }

 private:
  Partition judged(Parts parts) const {
    Partition partition;
    partition.cost = connectivity_cost(graph_, parts, static_cast<int>(limits_.size()));
    partition.overweight = overweight(graph_, limits_, parts);
    partition.parts = std::move(parts);
    return partition;
  }
  /// The better of a partition and what comes of it when vertices are joined only where `within`
  /// has the same number for them, which holds for no two of different parts.
  Partition refined_within(const Parts& within, const Partition& best) {
    const std::vector<Level> levels = coarsen(graph_, enough_, heaviest_, &within, draws_);
    Parts parts = best.parts;
    for (const Level& level : levels) parts = lift(parts, level);
    Partition next = refined(levels, std::move(parts));
    return is_better(next, best) ? next : best;
  }
  /// `parts`: of the coarsest level.
  Partition refined(const std::vector<Level>& levels, Parts parts) {
    for (std::size_t i = levels.size(); i-- > 0;) {
      refine(levels[i].graph, limits_, parts, draws_);
      parts = project(parts, levels[i].clusters);
    }
    refine(graph_, limits_, parts, draws_);
    return judged(std::move(parts));
  }

  const Hypergraph& graph_;
  const std::vector<std::int64_t>& limits_;
  Draws draws_;
  std::size_t enough_ = 0;
  std::int64_t heaviest_ = 0;
};

}  // namespace

std::vector<Partition> best_partitions(const Hypergraph& graph, const PartitionSpec& spec) {
  const std::size_t seeds = spec.seeds.size();
  const std::size_t starts =
      spec.starts > 0 ? static_cast<std::size_t>(spec.starts)
                      : std::clamp<std::size_t>(pins_of_starts / (graph.all_pins() + 1), 4, 32);
  std::vector<Partition> found(seeds + starts);
  datasets::parallel_for(found.size(), spec.threads, [&](std::size_t i) {
    Multilevel multilevel(graph, spec, i);
    found[i] = i < seeds ? multilevel.from(spec.seeds[i]) : multilevel.from_nothing();
  });
  std::stable_sort(found.begin(), found.end(), is_better);
  // Each of the best is combined with the next one, then with the one behind that, and so on.
  const std::size_t count = std::min(parents, found.size());
  for (std::size_t round = 1; round < count; ++round) {
    std::vector<Partition> children(count - round);
    datasets::parallel_for(children.size(), spec.threads, [&](std::size_t i) {
      Multilevel multilevel(graph, spec, found.size() * round + i);
      children[i] = multilevel.combined(found[i], found[i + round]);
    });
    for (std::size_t i = 0; i < children.size(); ++i) found[i] = std::move(children[i]);
    std::stable_sort(found.begin(), found.end(), is_better);
  }
  return found;
}

}  // namespace duplex::tools
