#include "net/topology/topology.h"

#include "core/error.h"

namespace duplex::net {

std::vector<int> Topology::workers() const {
  std::vector<int> ranks;
  for (int rank = 0; rank < size; ++rank)
    if (is_worker(rank)) ranks.push_back(rank);
  return ranks;
}

int Topology::worker_number(int rank) const {
  if (!is_worker(rank)) return -1;
  return mode == ServerMode::central && rank > server ? rank - 1 : rank;
}

ShardMap Topology::shard_map(const std::vector<std::size_t>& counts, Shards shards,
                             std::optional<std::size_t> chunk_bytes,
                             const std::vector<std::vector<int>>& members) const {
  if (!members.empty() && mode == ServerMode::central)
    throw Error("a network that is cut has no server that does not train", Exit::usage);
  if (!members.empty())
    return ShardMap::among(counts, members, size, group,
                           chunk_bytes.value_or(ShardMap::central_chunk_bytes));
  if (mode == ServerMode::central)
    return ShardMap::central(counts, server, chunk_bytes.value_or(ShardMap::central_chunk_bytes));
  return ShardMap::distributed(counts, size, shards,
                               chunk_bytes.value_or(ShardMap::default_chunk_bytes));
}

std::vector<int> Topology::peers_of(int rank) const {
  std::vector<int> ranks;
  for (int other = 0; other < size; ++other)
    if (connected(rank, other)) ranks.push_back(other);
  return ranks;
}

}  // namespace duplex::net
