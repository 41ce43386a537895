#include "tools/dist/part_needs.h"

#include <algorithm>
#include <set>

namespace duplex::tools {

const net::ShardMap& PartNeeds::map_of(int ranks) const {
  const auto found = maps_.find(ranks);
  if (found != maps_.end()) return found->second;
  return maps_
      .emplace(ranks, spec_.parallel.topology(ranks).shard_map(counts_, spec_.parallel.shards,
                                                               spec_.exchange().chunk_bytes))
      .first->second;
}

/// The ranks, of so many, that owned elements which `rank` owns now.
std::vector<int> PartNeeds::owners_of_pieces(int ranks, int rank) const {
  const net::ShardMap &now = map_of(spec_.mesh.topology.size), &before = map_of(ranks);
  std::set<int> owners;
  for (std::size_t i = 0; i < now.chunks(); ++i) {
    const net::Chunk& chunk = now[i];
    if (chunk.owner != rank) continue;
    for (std::size_t j = before.first(chunk.parameter); j < before.first(chunk.parameter + 1); ++j)
      if (before[j].offset < chunk.offset + chunk.count &&
          chunk.offset < before[j].offset + before[j].count)
        owners.insert(before[j].owner);
  }
  return {owners.begin(), owners.end()};
}

std::vector<net::PartNeed> PartNeeds::of(const net::ResumePoint& point, int rank,
                                         const net::HeldParts& parts) const {
  const net::Topology& topology = spec_.mesh.topology;
  const auto ranks = static_cast<int>(point.ranks);
  const bool same = ranks == topology.size, trains = topology.is_worker(rank);
  const bool own_state = trains && spec_.workers_keep_state();
  const bool statistics = trains && statistics_;
  std::vector<net::PartNeed> needs;
  if (spec_.parallel.cuts() || parts.cut) {
    // The checkpoint does not say where the network was cut.
    for (int each = 0; each < std::max(std::min(ranks, net::most_ranks), 1); ++each)
      needs.push_back({each, true});
    return needs;
  }
  if (same && (own_state || (statistics && parts.held(rank, true)))) return {{rank, true}};
  if (ranks < 1 || ranks > net::most_ranks || spec_.parallel.topology(ranks).workers().empty())
    return {{0, true}};
  if (statistics) {
    const std::vector<int> workers = spec_.parallel.topology(ranks).workers();
    const auto first = std::find_if(workers.begin(), workers.end(),
                                    [&](int worker) { return parts.held(worker, true); });
    needs.push_back({first == workers.end() ? workers.front() : *first, true});
  }
  for (const int owner : owners_of_pieces(ranks, rank)) needs.push_back({owner, false});
  return needs;
}

}  // namespace duplex::tools
