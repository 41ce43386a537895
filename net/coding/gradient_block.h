// The base of a block of a gradient is the mean exponent. The exponents base - d and base + 1 + d
// have the distance d. The field is the mantissa, the sign, and a bit that is 1 where the exponent
// is above the base.
#pragma once
#include <algorithm>
#include <cstdint>

#include "net/coding/bits.h"
#include "net/coding/block.h"

namespace duplex::net::coding {

struct GradientBlock {
  static constexpr std::uint32_t field_bits = 25;
  static constexpr std::uint32_t mantissa = 0x7FFFFF;

  /// Splits 64 values into symbols and fields; returns the base.
  [[gnu::always_inline]] static std::int32_t split(Block& block, const Word* now,
                                                   const Word* /*before*/) {
    std::int32_t sum = 0, used = 0;
    for (int i = 0; i < block_values; ++i) {
      sum += exponent_of(now[i]);
      used += now[i] != 0 ? 1 : 0;
    }
    const std::int32_t base = base_of(sum, used);
    std::int32_t bits = 0, most = 0;
    for (int i = 0; i < block_values; ++i) {
      const std::uint32_t value = now[i];
      const std::int32_t above = exponent_of(value) - base - 1;
      const std::int32_t symbol = value != 0 ? symbol_of(std::max(above, -1 - above)) : nothing;
      const std::int32_t length = value != 0 ? static_cast<std::int32_t>(field_bits) : 0;
      const std::uint32_t side = above >= 0 ? 1 : 0;
      const std::uint32_t field = (value & mantissa) | value >> 31 << 23 | side << 24;
      block.symbols[i] = static_cast<std::uint8_t>(symbol);
      block.lengths[i] = static_cast<std::uint32_t>(length);
      block.fields[i] = value != 0 ? field : 0;
      bits += symbol + length;
      most = std::max(most, symbol);
    }
    block.bits = static_cast<std::uint32_t>(bits);
    block.most = static_cast<std::uint32_t>(most);
    return base;
  }

  /// Finds the lengths of the fields; they are always right.
  [[gnu::always_inline]] static bool measure(Block& block, std::int32_t /*base*/,
                                             const Word* /*before*/) {
    for (int i = 0; i < block_values; ++i)
      block.lengths[i] = block.symbols[i] != nothing ? field_bits : 0;
    return true;
  }

  /// Makes the values. Returns whether all exponents are within 0 and 255.
  [[gnu::always_inline]] static bool join(const Block& block, std::int32_t base, Word* values) {
    std::uint32_t exponents = 0;
    for (int i = 0; i < block_values; ++i) {
      const std::uint32_t field = block.fields[i];
      const std::int32_t symbol = block.symbols[i], distance = distance_of(symbol);
      const bool there = symbol != nothing;
      const auto exponent = static_cast<std::uint32_t>((field >> 24 & 1) != 0 ? base + 1 + distance
                                                                              : base - distance);
      const std::uint32_t bits = (field & mantissa) | (field >> 23 & 1) << 31 | exponent << 23;
      exponents |= there ? exponent : 0;
      values[i] = there ? bits : 0;
    }
    return exponents <= 255;
  }
};

}  // namespace duplex::net::coding
