// Unpacks a chunk, block by block. `Kind` is WeightBlock or GradientBlock; `Steps` are the two
// steps that a processor may have better instructions for.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "net/coding/bits.h"
#include "net/coding/block.h"
#include "net/coding/pack_chunk.h"

namespace duplex::net::coding {

/// These throw CodingError.
[[noreturn]] void refuse_format(const std::uint8_t* from, std::size_t size, std::size_t count);
[[noreturn]] void refuse(const char* why);

/// Bytes that may be read behind a block's end.
constexpr std::size_t overread = 128;
/// The most bytes that are read for a block: its base, a word for every code (longer ones are
/// refused), four bytes for every field, and what is read behind.
constexpr std::size_t most_block = 1 + 8 * block_values + 4 * block_values + overread;

struct PlainSteps {
  /// Writes `first` + the number of each bit that is set, modulo 256; returns how many these are.
  /// It may write 64 of them whatever the bits are.
  [[gnu::always_inline]] static std::size_t ones(std::uint64_t bits, std::size_t first,
                                                 std::uint8_t* to) {
    std::size_t count = 0;
    for (; bits != 0; bits &= bits - 1)
      to[count++] =
          static_cast<std::uint8_t>(first + static_cast<std::size_t>(__builtin_ctzll(bits)));
    return count;
  }

  /// Reads the fields, whose lengths are known, from number `bit` of a stream on; returns the
  /// number of the bit behind them. It reads `overread` bytes behind them at most.
  [[gnu::always_inline]] static std::size_t fields(Block& block, const std::uint8_t* stream,
                                                   std::size_t bit) {
    for (int i = 0; i < block_values; ++i) {
      const std::uint64_t beyond = ~std::uint64_t{0} << block.lengths[i];
      block.fields[i] = static_cast<std::uint32_t>(bits_at(stream, bit) & ~beyond);
      bit += block.lengths[i];
    }
    return bit;
  }
};

/// Reads the symbols of the first `here` values from number `bit` of a stream on, and gives the
/// others `nothing`. Returns the number of the bit behind the codes.
template <class Steps>
[[gnu::always_inline]] inline std::size_t take_symbols(Block& block, const std::uint8_t* stream,
                                                       std::size_t bit, std::size_t here) {
  // `ends` are the numbers of the bits, from `bit` on and modulo 256, at which codes end; the first
  // is that of the bit before. No word of the stream is without one, so they are less than 128
  // apart.
  std::uint8_t ends[1 + 2 * block_values];
  ends[0] = 255;
  std::size_t found = 0, word = 0, next = 0;
  while (found < here) {
    word = next;
    const std::uint64_t bits = bits_at(stream, bit + word);
    if (bits == 0) refuse("a packed chunk has a code that is too long");
    found += Steps::ones(bits, word, ends + 1 + found);
    next += 64 - (bit + word) % 8;
  }
  for (std::size_t i = here; i < block_values; ++i)
    ends[1 + i] = static_cast<std::uint8_t>(ends[i] + 1 + nothing);
  std::uint8_t most = 0;
  for (int i = 0; i < block_values; ++i) {
    block.symbols[i] = static_cast<std::uint8_t>(ends[1 + i] - ends[i] - 1);
    most = std::max(most, block.symbols[i]);
  }
  if (most > most_symbol) refuse("a packed chunk has a code that is too long");
  return bit + word + static_cast<std::uint8_t>(ends[here] - word) + 1;
}

/// Unpacks the block at number `bit` of a stream that goes on for most_block bytes, of which the
/// first `here` values are the chunk's; overwrites 64 values. Returns the number of the bit behind
/// it.
template <class Kind, class Steps>
[[gnu::always_inline]] inline std::size_t unpack_block(const std::uint8_t* stream, std::size_t bit,
                                                       Word* values, std::size_t here) {
  const auto first = static_cast<std::uint32_t>(bits_at(stream, bit) & 0xFF);
  bit += 8;
  if (first == raw_block) {
    for (std::size_t i = 0; i < here; ++i, bit += 32)
      values[i] = static_cast<std::uint32_t>(bits_at(stream, bit));
    return bit;
  }
  const auto base = static_cast<std::int32_t>(first);
  Block block;
  bit = take_symbols<Steps>(block, stream, bit, here);
  if (!Kind::measure(block, base, values)) refuse("a packed chunk has a field of over 32 bits");
  bit = Steps::fields(block, stream, bit);
  if (!Kind::join(block, base, values)) refuse("a packed chunk has an exponent that is none");
  return bit;
}

/// Does what unpack_weights and unpack_gradient say (lossless.h).
template <class Kind, class Steps>
[[gnu::always_inline]] inline void unpack_chunk(const std::uint8_t* from, std::size_t size,
                                                float* to, std::size_t count) {
  if (size == 1 + 4 * count && from[0] == raw_chunk) {
    std::memcpy(to, from + 1, 4 * count);
    return;
  }
  if (size == 0 || size > 1 + 4 * count || from[0] != packed_chunk)
    refuse_format(from, size, count);
  auto* values = reinterpret_cast<Word*>(to);
  std::size_t bit = 8, done = 0;
  for (; count - done >= block_values && size - bit / 8 >= most_block; done += block_values)
    bit = unpack_block<Kind, Steps>(from, bit, values + done, block_values);

  // The last blocks are read from a copy with zeros behind it. Where more than most_block bytes are
  // left, they are too many, so that the end need not be in the copy.
  std::uint8_t rest[2 * most_block] = {};
  const std::size_t skipped = bit / 8, left = size - skipped;
  std::memcpy(rest, from + skipped, std::min(left, most_block));
  bit %= 8;
  for (; done < count; done += block_values) {
    const std::size_t here = std::min<std::size_t>(block_values, count - done);
    alignas(64) std::uint32_t last[block_values] = {};
    std::memcpy(last, values + done, 4 * here);
    bit = unpack_block<Kind, Steps>(rest, bit, last, here);
    if (bit > 8 * left) refuse("a packed chunk ends before its values do");
    std::memcpy(values + done, last, 4 * here);
  }
  if (left != (bit + 7) / 8 || bits_at(rest, bit) != 0)
    refuse("a packed chunk goes on behind its values");
}

}  // namespace duplex::net::coding
