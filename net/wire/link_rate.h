// Bounds what a process sends and takes, so that a fast link feels like a slow one.
#pragma once
#include <chrono>
#include <cstddef>
#include <mutex>

#include "core/clock.h"

namespace duplex::net {

/// One direction of a link: a token bucket, which all connections that use it share. Any thread may
/// call its functions.
///
/// A thread that wants to move bytes waits until ready(), moves most() at the most, and then says
/// how many it has moved. Threads that wait together are let through together, so that connections
/// have equal parts.
class TokenBucket {
 public:
  /// So many bytes pass at once after a pause, which is what the kernel holds unsent for a
  /// connection.
  static constexpr std::size_t burst = std::size_t{64} << 10;

  explicit TokenBucket(double bytes_per_second);

  double rate() const { return rate_; }  ///< Bytes a second.
  /// The most bytes to move at one time: those of a millisecond, or of a segment.
  std::size_t most() const { return most_; }
  /// Returns from when on bytes may be moved.
  Clock::time_point ready() const;
  /// Takes the tokens of bytes that were moved. `waited`: since ready(), however late the thread
  /// woke up, so that the time in between is not lost to the link.
  void take(std::size_t bytes, bool waited);

 private:
  const double rate_;
  const std::size_t most_;
  mutable std::mutex mutex_;  ///< Guards `next_`; no other lock is taken under it.
  Clock::time_point next_;    ///< When everything that was moved has passed the link.
};

/// Both directions of the link of a rank.
struct LinkRate {
  explicit LinkRate(double bytes_per_second) : out(bytes_per_second), in(bytes_per_second) {}

  TokenBucket out, in;
};

}  // namespace duplex::net
