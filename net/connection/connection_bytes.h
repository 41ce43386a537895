// The bytes that crossed a connection, as the ledger and the kernel counted them.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>

namespace duplex::net {

/// Bytes of all frames of a connection, with all that protects them.
struct ConnectionBytes {
  int peer = -1;
  std::string protection;                              ///< name_of(Protection); "": plain.
  std::uint64_t sent = 0, received = 0;                ///< By the ledger.
  std::uint64_t kernel_sent = 0, kernel_received = 0;  ///< By the kernel, if `counted`.
  std::uint64_t kernel_sent_again = 0;                 ///< Bytes that TCP took for lost and sent
                                                       ///< again.
  bool counted = false;                                ///< Whether the kernel counts bytes.
  std::size_t window = 0;  ///< Bytes that the peer might have under way at the end; 0: no bound.
  std::uint64_t pace = 0;  ///< Bytes a second that this side might send at the end; 0: no limit.
};

}  // namespace duplex::net
