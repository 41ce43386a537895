// Incast: many workers that send to one server at once.
#pragma once
#include <algorithm>
#include <cstddef>
#include <optional>

namespace duplex::net {

/// What a dedicated server lets each of its workers have under way to it; none: as much as it can
/// use, as one that sends alone or in its turn. Equal windows that a switch holds without dropping
/// give all workers equal parts of the server's link; one that sends while others compute fills a
/// link of 10 Gbit/s at 0.2 ms with the greatest of them. What they leave waiting in the switch
/// delays what a worker acknowledges of its weights as well.
inline std::optional<std::size_t> window_of(std::size_t workers, bool semaphore) {
  constexpr std::size_t all = std::size_t{2} << 20, least = std::size_t{64} << 10;
  constexpr std::size_t most = std::size_t{256} << 10;
  if (semaphore || workers <= 1) return std::nullopt;
  return std::clamp(all / workers, least, most);
}

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
