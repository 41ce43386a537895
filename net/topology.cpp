#include "net/topology.h"

namespace duplex::net {

std::vector<int> Topology::workers() const {
  std::vector<int> ranks;
  for (int rank = 0; rank < size; ++rank)
    if (is_worker(rank)) ranks.push_back(rank);
  return ranks;
}

std::vector<int> Topology::peers_of(int rank) const {
  std::vector<int> ranks;
  for (int other = 0; other < size; ++other)
    if (connected(rank, other)) ranks.push_back(other);
  return ranks;
}

}  // namespace duplex::net
