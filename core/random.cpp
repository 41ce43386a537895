#include "core/random.h"

#include <cmath>

namespace duplex {

std::uint64_t stream_of(std::string_view name) {
  std::uint64_t hash = 0xCBF29CE484222325u;
  for (char letter : name) {
    hash ^= static_cast<unsigned char>(letter);
    hash *= 0x100000001B3u;
  }
  return hash;
}

float RandomStream::normal(std::uint64_t index) const {
  constexpr double two_pi = 6.283185307179586;
  const double radius = std::sqrt(-2.0 * std::log(1.0 - double{uniform(2 * index)}));
  return static_cast<float>(radius * std::cos(two_pi * double{uniform(2 * index + 1)}));
}

std::uint32_t RandomStream::below(std::uint64_t index, std::uint32_t bound) const {
  return static_cast<std::uint32_t>((std::uint64_t{bits(index)} * bound) >> 32);
}

void RandomStream::fill_uniform(float* values, std::uint64_t count, std::uint64_t first) const {
  std::uint64_t i = 0;
  while (i < count) {
    const std::uint64_t index = first + i;
    const PhiloxCounter words = block(index / 4);
    for (std::uint64_t lane = index % 4; lane < 4 && i < count; ++lane, ++i) {
      values[i] = static_cast<float>(words[lane] >> 8) * 0x1p-24f;
    }
  }
}

}  // namespace duplex
