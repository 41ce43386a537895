// What processes of a training hold, whether each has the whole network or a part of it.
#pragma once
#include <cstddef>
#include <vector>

#include "net/store/store.h"
#include "tools/memory/rank_memory.h"

namespace duplex::tools {

/// What a process holds of the host's memory while it does something.
struct Held {
  const char* doing;
  MemoryUse host;
};

/// Sets what the process holds of the host's memory, and when, to the most of these.
void take_most(RankMemory& rank, const std::vector<Held>& all);

/// Adds what a process has of its networks, of which it has so many (`slots`), each on a GPU of its
/// own or all in the host's memory. `updates`: so does the optimiser. `alone`: nothing is
/// exchanged. The memory of a GPU is that of one slot.
void add_networks(RankMemory& rank, MemoryUse& host, const MemorySpec& spec,
                  const NetworkMemory& network, std::size_t slots, bool updates, bool alone);

/// The batches of a loader of so many images of that many bytes as floats, and what each of its
/// threads decodes an image into.
std::size_t loader_bytes(std::size_t image, std::int64_t batch);

/// The store of an owner. Parameters whose gradients are exchanged as factors are not in it;
/// `factored` must outlive the result.
net::StoreSpec store_spec(const MemorySpec& spec, const net::Topology& topology, int rank,
                          const net::ShardMap& map, const std::vector<Model::Linear>& factored);
bool is_factored(const std::vector<Model::Linear>& factored, std::size_t parameter);

/// Buffers of the connections for payloads of parameters that are not float32.
std::size_t coded_bytes_of(const MemorySpec& spec, const net::Topology& topology, int rank,
                           const net::ShardMap& map);
/// The ledger's records of so many frames, in a vector that grows by doubling, for each direction,
/// and once more while they are written.
std::size_t ledger_bytes(std::size_t frames);

}  // namespace duplex::tools
