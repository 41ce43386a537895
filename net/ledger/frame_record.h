// The record of one frame in the ledger: its kind, size and times.
#pragma once
#include <cstdint>

#include "net/wire/frame.h"

namespace duplex::net {

/// Times are nanoseconds on this rank's monotonic clock.
struct FrameRecord {
  std::uint64_t step = 0;
  std::uint32_t parameter = 0;
  std::uint32_t chunk = 0;
  FrameKind kind = FrameKind::hello;
  bool sent = false;        ///< Sent by this rank; otherwise received.
  std::int32_t peer = -1;   ///< Rank at the other end.
  std::uint64_t bytes = 0;  ///< With the header.
  std::int64_t saved =
      0;  ///< Bytes that the values' coding saved: float32 would have so many more.
  std::int64_t queued = 0;  ///< Sent: when it was handed over. Received: as `first`.
  std::int64_t first = 0;   ///< Sent: before the kernel got its first byte. Received: the header
                            ///< was there.
  std::int64_t last = 0;    ///< Sent: the kernel had its last byte. Received: all of it was there.
};

/// Converts this rank's clock to the coordinator's: coordinator time = local + offset - epoch.
struct CoordinatorTime {
  std::int64_t offset_ns = 0, epoch_ns = 0, error_ns = 0;
  std::int64_t of(std::int64_t local) const { return local + offset_ns - epoch_ns; }
};

}  // namespace duplex::net
