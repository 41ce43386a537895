#include "net/store/store_memory.h"

#include <algorithm>

#include "net/coding/coding.h"

namespace duplex::net {

StoreMemory store_memory(const ShardMap& map, int rank, const StoreSpec& spec) {
  // Gradients of the worker on this rank are read where they lie.
  const std::size_t own = spec.own >= 0 ? 1 : 0;
  std::size_t owned = 0, chunks = 0;
  std::size_t joint = 0;  // Of what is owned, the part of which others send gradients.
  std::size_t sent = 0;   // The gradients of one step that they send.
  std::size_t senders = 0;
  for (std::size_t i = 0; i < map.chunks(); ++i)
    if (map[i].owner == rank && !(spec.leaves && spec.leaves(map[i].parameter))) {
      const std::vector<int>* members = map.members(map[i].parameter);
      const std::size_t others =
          (members != nullptr ? members->size() : static_cast<std::size_t>(spec.workers)) - own;
      owned += map[i].bytes();
      sent += others * map[i].bytes();
      senders = std::max(senders, others);
      if (others > 0) {
        joint += map[i].bytes();
        ++chunks;
      }
    }
  const auto states = static_cast<std::size_t>(spec.average ? 0 : spec.optimiser.states());
  StoreMemory memory;
  const bool asynchronous = spec.sync == Sync::none;
  memory.state = owned * (states + (asynchronous ? 1 : 0));
  if (!asynchronous && spec.keeps_before) memory.before = owned * (1 + states);
  if (!asynchronous && spec.packs && joint > 0)
    memory.packed = coded_bytes(Coding::lossless, joint / sizeof(float)) + chunks * coding_slack;
  if (sent == 0) return memory;
  if (asynchronous) {
    memory.received = senders * map.longest_of(rank) * sizeof(float);
    return memory;
  }
  // The store holds a sum for each chunk, and gradients that came before their turn. The last
  // gradient that comes is added to the sum at once.
  const std::size_t waiting = spec.own >= 0 ? sent : sent - joint;
  memory.received =
      std::min(waiting, joint + spec.early_bytes) + senders * map.longest_of(rank) * sizeof(float);
  return memory;
}

}  // namespace duplex::net
