// What crossed a connection, by the ledger and by the kernel's counters.
#pragma once
#include <cstddef>
#include <cstdint>

namespace duplex::net {

/// Bytes of a connection, of all frames.
struct ConnectionBytes {
  int peer = -1;
  std::uint64_t sent = 0, received = 0;                ///< By the ledger.
  std::uint64_t kernel_sent = 0, kernel_received = 0;  ///< By the kernel's counters,
  std::uint64_t kernel_sent_again = 0;                 ///< and what TCP took for lost of `sent`,
  bool counted = false;                                ///< if it has them.
  std::size_t window = 0;  ///< What the peer might have under way at the end; 0: without bound.
  std::uint64_t pace = 0;  ///< What this side might send a second at the end; 0: likewise.
};

}  // namespace duplex::net
