// Defines a route, on which maps cross between the ranks that a network is cut over.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>

namespace duplex::net {

/// One rank sends another a map of so many elements in every micro-batch, and gets its gradient
/// back where `gradient`. Other values may take the same way, one message in every step.
struct MapRoute {
  int from = 0, to = 0;
  std::size_t elements = 0;
  bool gradient = true;
  bool every_step = false;  ///< MapMessage::micro_batch counts steps.
  std::string name;         ///< What it is a map of, for messages: "conv1_1".
};

/// The most bytes of a map's frame.
constexpr std::size_t map_frame_bytes = std::size_t{512} << 10;

/// A message crosses in frames of about equal size: so many.
inline std::uint32_t map_frames(std::size_t elements, std::size_t frame_bytes = map_frame_bytes) {
  const std::size_t most = frame_bytes / sizeof(float);
  return static_cast<std::uint32_t>((elements + most - 1) / most);
}

/// Returns where frame `number` of `count` begins, in elements.
inline std::size_t map_frame_begin(std::size_t elements, std::uint32_t number,
                                   std::uint32_t count) {
  return elements * number / count;
}

}  // namespace duplex::net
