// The memory that a store takes, before there is one.
#pragma once
#include <cstddef>

#include "net/store/store.h"

namespace duplex::net {

/// Bytes that a store takes beside the parameters that it is given.
struct StoreMemory {
  /// The optimiser's state; of an asynchronous store, weights of its own, too.
  std::size_t state = 0;
  /// Each chunk as it was before its last update (StoreSpec::keeps_before).
  std::size_t before = 0;
  /// Updated weights in the form in which they leave (StoreSpec::packs).
  std::size_t packed = 0;
  /// At most: gradients that came from other ranks and are not in the weights yet. Where all come
  /// at the same moments it is less.
  std::size_t received = 0;
};

/// Returns what make_store()'s store takes on this rank.
StoreMemory store_memory(const ShardMap& map, int rank, const StoreSpec& spec);

}  // namespace duplex::net
