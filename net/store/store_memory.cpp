#include "net/store/store_memory.h"

#include <algorithm>

#include "net/coding/coding.h"

namespace duplex::net {

StoreMemory store_memory(const ShardMap& map, int rank, const StoreSpec& spec) {
  std::size_t owned = 0, chunks = 0;
  for (std::size_t i = 0; i < map.chunks(); ++i)
    if (map[i].owner == rank && !(spec.leaves && spec.leaves(map[i].parameter))) {
      owned += map[i].bytes();
      ++chunks;
    }
  const auto states = static_cast<std::size_t>(spec.average ? 0 : spec.optimiser.states());
  // Gradients of the worker on this rank are read where they lie.
  const std::size_t senders = static_cast<std::size_t>(spec.workers - (spec.own >= 0 ? 1 : 0));
  StoreMemory memory;
  const bool asynchronous = spec.sync == Sync::none;
  memory.state = owned * (states + (asynchronous ? 1 : 0));
  if (!asynchronous && spec.keeps_before) memory.before = owned * (1 + states);
  if (!asynchronous && spec.packs)
    memory.packed = coded_bytes(Coding::lossless, owned / sizeof(float)) + chunks * coding_slack;
  if (owned == 0 || senders == 0) return memory;
  if (asynchronous) {
    memory.received = senders * map.longest_of(rank) * sizeof(float);
    return memory;
  }
  // The store holds a sum for each chunk, and gradients that came before their turn. The last
  // gradient that comes is added to the sum at once.
  const std::size_t waiting = spec.own >= 0 ? senders : senders - 1;
  memory.received = std::min(waiting * owned, owned + spec.early_bytes) +
                    senders * map.longest_of(rank) * sizeof(float);
  return memory;
}

}  // namespace duplex::net
