// A stream of bits. The first bit is the lowest of the first byte, and a number comes with its
// lowest bit first.
//
// The functions of this file and of the others that coder_*.cpp include are always inlined, so that
// they are compiled for the processor of the function that calls them.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace duplex::net::coding {

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "words of a stream are little-endian");

/// A Word is the bits of a float where it lies.
using Word = std::uint32_t __attribute__((may_alias));

constexpr std::size_t most_put = 56;  ///< Bits that a writer takes at once, at most.

/// Writes a stream, 8 bytes at a time, and so up to 8 bytes behind the stream's end.
struct BitWriter {
  std::uint8_t* at;           ///< The first byte that is not complete.
  std::uint64_t pending = 0;  ///< Its bits so far, and zeros above them.
  std::uint64_t held = 0;     ///< How many bits it has so far, 0 to 7.

  /// Appends the lowest `bits` bits of a number whose other bits are 0; most_put at most.
  [[gnu::always_inline]] inline void put(std::uint64_t number, std::uint64_t bits) {
    pending |= number << held;
    std::memcpy(at, &pending, sizeof pending);
    held += bits;
    at += held / 8;
    pending >>= held & ~std::uint64_t{7};
    held &= 7;
  }
};

/// Returns the bits of a stream from number `bit` on: 57 to 64 of them, and zeros above. It reads 8
/// bytes.
[[gnu::always_inline]] inline std::uint64_t bits_at(const std::uint8_t* stream, std::size_t bit) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, stream + bit / 8, sizeof bits);
  return bits >> (bit % 8);
}

}  // namespace duplex::net::coding
