// Incast: many peers that send to one rank at once.
#pragma once
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>

namespace duplex::net {

/// Bytes that a peer may always have under way: a segment of loopback.
constexpr std::size_t least_window = std::size_t{64} << 10;

/// What a rank lets each of so many peers have under way to it, at most; none: as much as it can
/// use, as one that sends alone or in its turn. Equal windows that a switch holds without dropping
/// give all peers equal parts of the rank's link; one that sends while others compute fills a link
/// of 10 Gbit/s at 0.2 ms with the greatest of them. What waits in the switch delays what it
/// acknowledges of this rank's own frames as well, and, where all train, the last weights of a
/// step: one rank's longer than another's, while links stand idle. So ranks that train let less
/// wait, all peers together, than a `dedicated` server, to which everything must come through one
/// port; with still less under way what they send gathers at one link, and others stand idle within
/// the step.
inline std::optional<std::size_t> window_of(std::size_t peers, bool dedicated, bool semaphore) {
  constexpr std::size_t mib = std::size_t{1} << 20;
  if (peers <= 1 || (dedicated && semaphore)) return std::nullopt;
  return dedicated ? std::clamp(2 * mib / peers, least_window, mib / 4)
                   : std::clamp(3 * mib / 2 / peers, least_window, mib / 3);
}

/// What a rank lets each of its peers have under way to it now. It begins with the most; where the
/// network drops segments on their way here, as a switch with small buffers does, it is halved, and
/// grows again while nothing is lost. It is the same for all peers, and ranks that send to one
/// another tell each other, for all to take the least: a connection's part of its sender's link is
/// what it has under way there, so a rank with smaller windows than others would have everything
/// last, and all would wait for it. For any thread.
class ReceiveWindow {
 public:
  using Clock = std::chrono::steady_clock;
  /// How long what was under way with the window before may still be dropped: for that it is not
  /// halved again.
  static constexpr std::chrono::milliseconds settling{500};
  /// For how long nothing is to be lost before it grows, by a quarter.
  static constexpr std::chrono::milliseconds quiet{30000};
  /// As many segments may come behind a gap because one was overtaken; TCP itself takes more for a
  /// loss (RFC 5681: three duplicate acknowledgements).
  static constexpr std::uint64_t overtaken = 3;

  /// `most`: window_of's; none: it has no bound, ever.
  explicit ReceiveWindow(std::optional<std::size_t> most)
      : first_(most.value_or(0)), most_(most), own_(first_), others_(first_) {}

  /// Bytes; none: as many as a peer can use.
  std::optional<std::size_t> bytes() const;
  /// What this rank has found that its port or its kernel holds; the others are to know.
  std::size_t own() const;
  bool narrowed() const;  ///< own() is less than it began with.
  /// So many bytes are the most that the kernel gives.
  void allow(std::size_t bytes);
  /// Since the last look so many segments came from one peer behind others that had not come.
  /// Whether own() is another now.
  bool look(std::uint64_t behind_gaps, Clock::time_point now);
  /// What a peer has found, at last.
  void hear(int peer, std::size_t bytes);

 private:
  std::size_t least_of_all() const { return std::min(own_, others_); }

  const std::size_t first_;
  mutable std::mutex mutex_;
  std::optional<std::size_t> most_;
  std::size_t own_, others_;          ///< `others_`: the least of `heard_`.
  std::map<int, std::size_t> heard_;  ///< By peer.
  Clock::time_point halved_{}, changed_{};
};

/// What a dedicated server keeps, if it is wanted no otherwise, of gradients that came before their
/// turn to be added. Workers that begin at different moments send different ones first: without
/// room for them all would wait for one, and the server's link with them.
constexpr std::size_t usual_early_bytes = std::size_t{64} << 20;

/// Bytes that it keeps where `owned` bytes of weights are its own and `least` are wanted: one of
/// each gradient always has room.
inline std::size_t early_room(std::size_t owned, std::size_t least) {
  return std::max(owned, least);
}

}  // namespace duplex::net
