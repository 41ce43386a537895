// The window by which a rank bounds what its peers have under way to it, so that a switch's port
// does not overflow when many peers send to one rank at once (incast).
#pragma once
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>

#include "core/clock.h"

namespace duplex::net {

/// Bytes that a peer may always have under way; a segment of loopback is as large.
constexpr std::size_t least_window = std::size_t{64} << 10;

/// The bytes that a rank lets each of so many peers have under way to it at most; none: as many as
/// the peer can use, which is so for a peer that sends alone or in its turn. Equal windows that a
/// switch holds without dropping give all peers equal parts of the rank's link. The greatest of
/// them lets a peer that sends while others compute fill a link of 10 Gbit/s with a round trip of
/// 0.2 ms. Bytes that wait in the switch delay the acknowledgements of this rank's own frames,
/// which travel with them, and, where all ranks train, the last weights of a step: for one rank
/// longer than for another, while links stand idle. So ranks that train let less wait, all peers
/// together, than a `dedicated` server, which gets everything through one port. With still less
/// under way, traffic gathers at one link while others stand idle within the step.
inline std::optional<std::size_t> window_of(std::size_t peers, bool dedicated, bool semaphore) {
  constexpr std::size_t mib = std::size_t{1} << 20;
  if (peers <= 1 || (dedicated && semaphore)) return std::nullopt;
  return dedicated ? std::clamp(2 * mib / peers, least_window, mib / 4)
                   : std::clamp(3 * mib / 2 / peers, least_window, mib / 3);
}

/// The window that a rank gives each of its peers now. It begins with the greatest. When the
/// network drops segments on their way here, as a switch with small buffers does, it is halved; it
/// grows again while nothing is lost. It is the same for all peers. Ranks that send to one another
/// tell each other their windows, and all take the least: a connection's part of its sender's link
/// is what it has under way there, so a rank with smaller windows than others would get everything
/// last, and all would wait for it. Any thread may call it.
class ReceiveWindow {
 public:
  /// Time in which bytes sent under the previous window may still be dropped; within it the window
  /// is not halved again.
  static constexpr std::chrono::milliseconds settling{500};
  /// Time without a loss after which the window grows, by a quarter.
  static constexpr std::chrono::milliseconds quiet{30000};
  /// Up to so many segments may come behind a gap because one was overtaken. More mean a loss, as
  /// for TCP itself (RFC 5681: three duplicate acknowledgements).
  static constexpr std::uint64_t overtaken = 3;

  /// `most`: from window_of(); none: there is never a bound.
  explicit ReceiveWindow(std::optional<std::size_t> most)
      : first_(most.value_or(0)), most_(most), own_(first_), others_(first_) {}

  /// The window in bytes; none: as many as a peer can use.
  std::optional<std::size_t> bytes() const;
  /// The window that this rank has found for its own port and kernel, in bytes; the others are told
  /// it.
  std::size_t own() const;
  bool narrowed() const;  ///< Whether own() is less than at the beginning.
  /// Bounds the window by what the kernel gives at most, in bytes.
  void allow(std::size_t bytes);
  /// `behind_gaps`: segments that came from one peer behind missing ones since the last look.
  /// Returns whether own() has changed.
  bool look(std::uint64_t behind_gaps, Clock::time_point now);
  /// Takes the newest window of a peer, in bytes.
  void hear(int peer, std::size_t bytes);

 private:
  std::size_t least_of_all() const { return std::min(own_, others_); }

  const std::size_t first_;
  /// Guards all below. The threads of all connections take it, and take no other lock meanwhile.
  mutable std::mutex mutex_;
  std::optional<std::size_t> most_;
  std::size_t own_, others_;          ///< `others_`: the least of `heard_`.
  std::map<int, std::size_t> heard_;  ///< By peer.
  Clock::time_point halved_{}, changed_{};
};

}  // namespace duplex::net
