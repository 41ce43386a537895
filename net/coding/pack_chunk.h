// Packs a chunk, block by block. `Kind` is WeightBlock or GradientBlock.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "net/coding/bits.h"
#include "net/coding/block.h"

namespace duplex::net::coding {

/// The first byte of a packed chunk is its format.
enum Format : std::uint8_t { raw_chunk = 0, packed_chunk = 1 };

/// Appends the codes of the first `here` symbols, four at once where they fit.
[[gnu::always_inline]] inline void put_codes(BitWriter& out, const Block& block, std::size_t here) {
  if (4 * (block.most + 1) > most_put || here < block_values) {
    for (std::size_t i = 0; i < here; ++i)
      out.put(std::uint64_t{1} << block.symbols[i], block.symbols[i] + 1U);
    return;
  }
  constexpr int fours = block_values / 4;
  alignas(64) std::uint64_t codes[fours];
  alignas(64) std::uint32_t lengths[fours];
  for (int i = 0; i < fours; ++i) {
    std::uint32_t symbols = 0;
    std::memcpy(&symbols, block.symbols + 4 * i, sizeof symbols);
    const std::uint32_t one = symbols & 0xFF, two = one + 1 + (symbols >> 8 & 0xFF);
    const std::uint32_t three = symbols >> 16 & 0xFF, four = three + 1 + (symbols >> 24);
    const std::uint64_t low = 1U << one | 1U << two, high = 1U << three | 1U << four;
    codes[i] = low | high << (two + 1);
    lengths[i] = two + 1 + four + 1;
  }
  for (int i = 0; i < fours; ++i) out.put(codes[i], lengths[i]);
}

/// Appends the fields, two at once where they fit.
[[gnu::always_inline]] inline void put_fields(BitWriter& out, const Block& block) {
  constexpr int pairs = block_values / 2;
  alignas(64) std::uint64_t numbers[pairs], lengths[pairs];
  std::uint64_t beyond = 0;  // Its bit 6 is set where a pair is longer than most_put.
  for (int i = 0; i < pairs; ++i) {
    std::uint64_t fields = 0, both = 0;
    std::memcpy(&fields, block.fields + 2 * i, sizeof fields);
    std::memcpy(&both, block.lengths + 2 * i, sizeof both);
    numbers[i] = (fields & 0xFFFFFFFF) | fields >> 32 << (both & 0xFFFFFFFF);
    lengths[i] = (both & 0xFFFFFFFF) + (both >> 32);
    beyond |= lengths[i] + (63 - most_put);
  }
  if (beyond < 64) {
    for (int i = 0; i < pairs; ++i) out.put(numbers[i], lengths[i]);
  } else {
    for (int i = 0; i < block_values; ++i) out.put(block.fields[i], block.lengths[i]);
  }
}

/// Packs a block. Its first `here` values are the chunk's; the others have the symbol `nothing`.
/// Returns false, and has written nothing, if the stream would end behind `limit`.
template <class Kind>
[[gnu::always_inline]] inline bool pack_block(BitWriter& out, const Word* now, const Word* before,
                                              std::size_t here, const std::uint8_t* limit) {
  Block block;
  const auto base = static_cast<std::uint32_t>(Kind::split(block, now, before));
  // Every code has a one beside the zeros; values that are not the chunk's have no code.
  std::size_t bits = block.bits - nothing * (block_values - here) + here;
  const bool raw = block.most > most_symbol || bits >= 32 * here;
  if (raw) bits = 32 * here;
  const std::size_t bytes = (out.held + 8 + bits + 7) / 8;
  if (bytes > static_cast<std::size_t>(limit - out.at)) return false;
  out.put(raw ? raw_block : base, 8);
  if (raw) {
    for (std::size_t i = 0; i < here; ++i) out.put(now[i], 32);
  } else {
    put_codes(out, block, here);
    put_fields(out, block);
  }
  return true;
}

/// Does what pack_weights and pack_gradient say (lossless.h). For a gradient, which has no old
/// values, these are the gradient again, and nobody looks at them.
template <class Kind>
[[gnu::always_inline]] inline std::size_t pack_chunk(const float* values, const float* old_values,
                                                     std::size_t count, std::uint8_t* to) {
  const auto* now = reinterpret_cast<const Word*>(values);
  const auto* before = reinterpret_cast<const Word*>(old_values);
  const std::uint8_t* limit = to + 4 * count;
  BitWriter out{to + 1};
  std::size_t done = 0;
  bool shrinks = count > 0;
  for (; shrinks && count - done >= block_values; done += block_values)
    shrinks = pack_block<Kind>(out, now + done, before + done, block_values, limit);
  if (shrinks && done < count) {
    alignas(64) std::uint32_t last_now[block_values] = {}, last_before[block_values] = {};
    std::memcpy(last_now, now + done, 4 * (count - done));
    std::memcpy(last_before, before + done, 4 * (count - done));
    shrinks = pack_block<Kind>(out, last_now, last_before, count - done, limit);
  }
  if (!shrinks) {
    to[0] = raw_chunk;
    std::memcpy(to + 1, values, 4 * count);
    return 1 + 4 * count;
  }
  to[0] = packed_chunk;
  return static_cast<std::size_t>(out.at - to) + (out.held > 0 ? 1 : 0);
}

}  // namespace duplex::net::coding
