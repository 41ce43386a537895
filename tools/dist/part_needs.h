// The parts of a checkpoint that each rank of a run needs to go on from it.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "net/rendezvous/held_files.h"
#include "net/topology/shard_map.h"
#include "tools/dist/dist_spec.h"

namespace duplex::tools {

class PartNeeds {
 public:
  /// `counts`: elements of each parameter. `statistics`: the network has running statistics.
  PartNeeds(const DistSpec& spec, std::vector<std::size_t> counts, bool statistics)
      : spec_(spec), counts_(std::move(counts)), statistics_(statistics) {}

  /// Where as many ranks go on as wrote the checkpoint, a rank needs its own part. Otherwise it
  /// needs those that have pieces of what it owns now. A worker whose own running statistics are
  /// lost, or which is new, takes over those of the first worker whose are held. Where the network
  /// is, or was, cut, a rank needs all parts that there are.
  std::vector<net::PartNeed> of(const net::ResumePoint& point, int rank,
                                const net::HeldParts& parts) const;

 private:
  const net::ShardMap& map_of(int ranks) const;
  std::vector<int> owners_of_pieces(int ranks, int rank) const;

  const DistSpec& spec_;
  std::vector<std::size_t> counts_;
  bool statistics_;
  mutable std::map<int, net::ShardMap> maps_;  ///< By number of ranks.
};

}  // namespace duplex::tools
