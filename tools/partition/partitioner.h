// Shares out the vertices of a hypergraph among parts, multilevel (Karypis et al. 1999):
// coarsening, a first partition, and refinement on each level.
#pragma once
#include <cstdint>
#include <vector>

#include "tools/partition/hypergraph.h"

namespace duplex::tools {

struct PartitionSpec {
  std::vector<std::int64_t> limits;  ///< The most weight of every part.
  std::uint64_t seed = 1;
  int starts = 0;            ///< First partitions from nothing; 0: as many as its size allows.
  std::vector<Parts> seeds;  ///< Known partitions, which are refined, too.
  int threads = 1;           ///< The result does not depend on them.
};

struct Partition {
  Parts parts;
  std::int64_t cost = 0;        ///< connectivity_cost().
  std::int64_t overweight = 0;  ///< Beyond the limits; 0: they are kept.
};

/// The hypergraph's vertices weigh something, all together. Returns partitions, the best first:
/// those within the limits before others, and then the cheapest. The first is never worse than any
/// of the seeds.
std::vector<Partition> best_partitions(const Hypergraph& graph, const PartitionSpec& spec);

}  // namespace duplex::tools
