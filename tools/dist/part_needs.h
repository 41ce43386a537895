// The parts of a checkpoint that each rank of a run needs to go on from it.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "net/rendezvous/held_files.h"
#include "net/topology/shard_map.h"
#include "tools/dist/dist_spec.h"

namespace duplex::tools {

class PartNeeds {
 public:
  /// What a checkpoint says about the run that wrote it.
  struct Written {
    bool cut = false;     ///< Its network was cut.
    std::set<int> parts;  ///< The ranks that had a part. Empty: it does not say.
  };

  /// `counts`: elements of each parameter. `statistics`: the network has running statistics.
  /// `written`: by the checkpoints' steps.
  PartNeeds(const DistSpec& spec, std::vector<std::size_t> counts, bool statistics,
            std::map<std::uint64_t, Written> written)
      : spec_(spec),
        counts_(std::move(counts)),
        statistics_(statistics),
        written_(std::move(written)) {}

  /// Where as many ranks go on as wrote the checkpoint, a rank needs its own part. Otherwise it
  /// needs those that have pieces of what it owns now. A worker whose own running statistics are
  /// lost, or which is new, takes over those of the first worker whose are held. Where the network
  /// is, or was, cut, a rank needs all parts.
  std::vector<net::PartNeed> of(const net::ResumePoint& point, int rank,
                                const net::IsHeld& held) const;

 private:
  const net::ShardMap& map_of(int ranks) const;
  std::vector<int> owners_of_pieces(int ranks, int rank) const;

  const DistSpec& spec_;
  std::vector<std::size_t> counts_;
  bool statistics_;
  std::map<std::uint64_t, Written> written_;
  mutable std::map<int, net::ShardMap> maps_;  ///< By number of ranks.
};

}  // namespace duplex::tools
