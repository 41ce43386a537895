// Adds up the memory that processes of a training hold, whether each has the whole network or a
// part of it.
#pragma once
#include <cstddef>
#include <vector>

#include "net/store/store.h"
#include "tools/memory/rank_memory.h"

namespace duplex::tools {

/// A process holds so much of the host's memory while it does something.
struct Held {
  const char* doing;
  MemoryUse host;
};

/// Sets what the process holds of the host's memory, and when, to the most of these.
void take_most(RankMemory& rank, const std::vector<Held>& all);

/// Adds the memory of a process's networks, one for each slot, which are on a GPU each or all in
/// the host's memory. With `updates` the optimiser's state is there, too; with `alone` nothing is
/// exchanged. The memory of a GPU is that of one slot.
void add_networks(RankMemory& rank, MemoryUse& host, const MemorySpec& spec,
                  const NetworkMemory& network, std::size_t slots, bool updates, bool alone);

/// Returns the bytes of a loader's batches, of so many of the network's images each, and of the
/// buffers into which its threads decode an image.
std::size_t loader_bytes(const NetworkMemory& network, std::int64_t images);

/// Returns the specification of an owner's store. Parameters whose gradients are exchanged as
/// factors are not in it; `factored` must outlive the result.
net::StoreSpec store_spec(const MemorySpec& spec, const net::Topology& topology, int rank,
                          const net::ShardMap& map, const std::vector<Model::Linear>& factored);
bool is_factored(const std::vector<Model::Linear>& factored, std::size_t parameter);

/// Returns the bytes of the connections' buffers for parameters that cross in another coding than
/// float32.
std::size_t coded_bytes_of(const MemorySpec& spec, const net::Topology& topology, int rank,
                           const net::ShardMap& map);
/// Returns the bytes of the ledger's records of so many frames, which are in a vector that grows by
/// doubling, for each direction, and once more while they are written.
std::size_t ledger_bytes(std::size_t frames);

}  // namespace duplex::tools
