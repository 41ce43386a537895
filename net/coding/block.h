// A block is 64 values of a chunk, packed together. It has a base, and for every value a symbol and
// a field. The symbol is a small number that says how far the value lies from the base; it goes as
// its code, so many zeros and a one. The field is some bits that go as they are.
#pragma once
#include <cstdint>

namespace duplex::net::coding {

constexpr int block_values = 64;

/// This is the symbol of a value without a field: a weight that did not change, a gradient of +0.
/// The symbol of a distance from the base is the distance below 3, and one more from 3 on.
constexpr std::int32_t nothing = 3;
/// A block that would need a greater symbol goes raw.
constexpr std::uint32_t most_symbol = 40;
/// The greatest base, and the byte that stands in its place before a block that goes raw.
constexpr std::int32_t most_base = 254;
constexpr std::uint32_t raw_block = 255;

struct Block {
  alignas(64) std::uint8_t symbols[block_values];
  alignas(64) std::uint32_t lengths[block_values];  ///< Bits of the fields, 0 to 32.
  alignas(64) std::uint32_t fields[block_values];
  std::uint32_t bits;  ///< The sum of symbols and lengths.
  std::uint32_t most;  ///< The greatest symbol.
};

[[gnu::always_inline]] inline std::int32_t symbol_of(std::int32_t distance) {
  return distance + (distance >= nothing ? 1 : 0);
}
[[gnu::always_inline]] inline std::int32_t distance_of(std::int32_t symbol) {
  return symbol - (symbol > nothing ? 1 : 0);
}

[[gnu::always_inline]] inline std::int32_t exponent_of(std::uint32_t bits) {
  return static_cast<std::int32_t>(bits >> 23 & 0xFF);
}

/// Returns a block's base: the mean, rounded; 0 where there is nothing to take the mean of.
[[gnu::always_inline]] inline std::int32_t base_of(std::int32_t sum, std::int32_t count) {
  const std::int32_t mean = count > 0 ? (sum + count / 2) / count : 0;
  return mean < most_base ? mean : most_base;
}

}  // namespace duplex::net::coding
