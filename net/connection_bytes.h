// What crossed a connection, by the ledger and by the kernel's counters.
#pragma once
#include <cstdint>

namespace duplex::net {

/// Bytes of a connection, of all frames.
struct ConnectionBytes {
  int peer = -1;
  std::uint64_t sent = 0, received = 0;                ///< By the ledger.
  std::uint64_t kernel_sent = 0, kernel_received = 0;  ///< By the kernel's counters,
  bool counted = false;                                ///< if it has them.
};

}  // namespace duplex::net
