// A new weight is packed as its step: how many floats it lies further than the old one, which both
// ends hold. Steps are folded, 0, -1, 1, -2, 2, ... to 0, 1, 2, 3, 4, ... How many bits that takes
// depends on the update and on the old weight's exponent, since floats lie closer together near 0.
// Updates of neighbours are about as large as each other. So the base is the mean of width +
// exponent, and a weight is granted base - exponent bits. A folded step that is wider by c bits has
// the distance c, and its field leaves the highest bit out, which is 1.
#pragma once
#include <algorithm>
#include <cstdint>
#include <cstring>

#include "net/coding/bits.h"
#include "net/coding/block.h"

namespace duplex::net::coding {

/// Maps the bits of floats to integers (in two's complement) that have the order of the floats;
/// neighbours differ by 1. It is its own inverse.
[[gnu::always_inline]] inline std::uint32_t ordered(std::uint32_t bits) {
  return bits ^ (static_cast<std::uint32_t>(static_cast<std::int32_t>(bits) >> 31) & 0x7FFFFFFF);
}

[[gnu::always_inline]] inline std::uint32_t fold(std::uint32_t difference) {
  return difference << 1 ^ static_cast<std::uint32_t>(static_cast<std::int32_t>(difference) >> 31);
}
[[gnu::always_inline]] inline std::uint32_t unfold(std::uint32_t folded) {
  return folded >> 1 ^ (0 - (folded & 1));
}

/// Returns how many bits a number takes; it is not 0. This is the exponent of half of the number as
/// a float, which the vectors of every processor can compute. The bit behind each one is cleared,
/// so that no float is rounded up to the next power of 2.
[[gnu::always_inline]] inline std::int32_t width_of(std::uint32_t number) {
  const auto half = static_cast<float>(static_cast<std::int32_t>(number >> 1 & ~(number >> 2)));
  std::int32_t bits = 0;
  std::memcpy(&bits, &half, sizeof bits);
  return std::max(bits >> 23, 126) - 125;
}

struct WeightBlock {
  /// Returns the bits that a weight is granted whose old value is `before`.
  [[gnu::always_inline]] static std::int32_t granted(std::int32_t base, std::uint32_t before) {
    return std::min(32, std::max(0, base - exponent_of(before)));
  }

  /// Splits 64 weights into symbols and fields; returns the base.
  [[gnu::always_inline]] static std::int32_t split(Block& block, const Word* now,
                                                   const Word* before) {
    alignas(64) std::int32_t widths[block_values];
    std::int32_t sum = 0, count = 0;
    for (int i = 0; i < block_values; ++i) {
      const std::uint32_t folded = fold(ordered(now[i]) - ordered(before[i]));
      const std::int32_t changed = folded != 0 ? -1 : 0;  // A mask.
      const std::int32_t width = width_of(folded);
      block.fields[i] = folded;
      widths[i] = width;
      sum += (width + exponent_of(before[i])) & changed;
      count -= changed;
    }
    const std::int32_t base = base_of(sum, count);
    std::int32_t bits = 0, most = 0;
    for (int i = 0; i < block_values; ++i) {
      const std::uint32_t folded = block.fields[i];
      const std::int32_t changed = folded != 0 ? -1 : 0;
      const std::int32_t grant = granted(base, before[i]);
      const std::int32_t wider = std::max(0, widths[i] - grant);
      const std::int32_t length = (grant + std::max(0, wider - 1)) & changed;
      const std::int32_t symbol = (symbol_of(wider) & changed) | (nothing & ~changed);
      const std::int32_t highest = std::min(1, wider) & changed;
      block.symbols[i] = static_cast<std::uint8_t>(symbol);
      block.lengths[i] = static_cast<std::uint32_t>(length);
      block.fields[i] = folded ^ static_cast<std::uint32_t>(highest) << (length & 31);
      bits += symbol + length;
      most = std::max(most, symbol);
    }
    block.bits = static_cast<std::uint32_t>(bits);
    block.most = static_cast<std::uint32_t>(most);
    return base;
  }

  /// Finds the lengths of the fields. Returns whether no folded step has more than 32 bits.
  [[gnu::always_inline]] static bool measure(Block& block, std::int32_t base, const Word* before) {
    std::int32_t widest = 0;
    for (int i = 0; i < block_values; ++i) {
      const std::int32_t symbol = block.symbols[i];
      const std::int32_t changed = symbol == nothing ? 0 : -1;
      const std::int32_t grant = granted(base, before[i]), wider = distance_of(symbol);
      widest = std::max(widest, (grant + wider) & changed);
      block.lengths[i] = static_cast<std::uint32_t>((grant + std::max(0, wider - 1)) & changed);
    }
    return widest <= 32;
  }

  /// Makes the new weights of the old ones.
  [[gnu::always_inline]] static bool join(const Block& block, std::int32_t /*base*/,
                                          Word* weights) {
    for (int i = 0; i < block_values; ++i) {
      const std::uint32_t symbol = block.symbols[i];
      const std::uint32_t wider = symbol != 0 && symbol != nothing ? 1 : 0;
      const std::uint32_t folded = block.fields[i] | wider << (block.lengths[i] & 31);
      weights[i] = ordered(ordered(weights[i]) + unfold(folded));
    }
    return true;
  }
};

}  // namespace duplex::net::coding
