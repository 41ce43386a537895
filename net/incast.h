// Incast: many workers that send to one server at once.
#pragma once
#include <algorithm>
#include <cstddef>
#include <optional>

namespace duplex::net {

/// What a dedicated server lets each of its workers have under way to it; none: as much as it can
/// use, as one that sends alone or in its turn. Equal windows that a switch holds without dropping
/// give all workers equal parts of the server's link. Together they are eight times what a link of
/// 10 Gbit/s holds at 0.2 ms.
inline std::optional<std::size_t> window_of(std::size_t workers, bool semaphore) {
  constexpr std::size_t all = std::size_t{2} << 20, least = std::size_t{64} << 10;
  if (semaphore || workers <= 1) return std::nullopt;
  return std::max(all / workers, least);
}

}  // namespace duplex::net
