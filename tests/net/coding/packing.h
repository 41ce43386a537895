// Packs and unpacks as the tests of net/coding need it: by one coder, and so that a byte written in
// a wrong place is seen.
#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "net/coding/coders.h"
#include "net/coding/coding.h"
#include "net/coding/lossless.h"

namespace duplex::net {

/// The bits of floats.
using Bits = std::vector<std::uint32_t>;
using Packed = std::vector<std::uint8_t>;

enum class Content { weights, gradient };
constexpr Content contents[] = {Content::weights, Content::gradient};

/// Packs bits as floats; `before` counts for weights only.
inline Packed pack(const LosslessCoder& coder, Content content, const Bits& now,
                   const Bits& before) {
  constexpr std::size_t guard = 64;
  const std::size_t allowed = packed_limit(now.size()) + packing_slack;
  Packed bytes(allowed + guard, 0xA5);
  const auto* values = reinterpret_cast<const float*>(now.data());
  const std::size_t size =
      content == Content::weights
          ? coder.pack_weights(values, reinterpret_cast<const float*>(before.data()), now.size(),
                               bytes.data())
          : coder.pack_gradient(values, now.size(), bytes.data());
  EXPECT_LE(size, packed_limit(now.size())) << coder.name;
  EXPECT_EQ(std::count(bytes.begin() + static_cast<std::ptrdiff_t>(allowed), bytes.end(), 0xA5),
            static_cast<std::ptrdiff_t>(guard))
      << coder.name << " wrote behind its buffer";
  bytes.resize(size);
  return bytes;
}

/// The bits that came out, or the message of the CodingError.
struct Unpacked {
  Bits bits;
  std::string error;
};

/// Unpacks a copy of the bytes that ends where they end. Bits of a gradient begin as those of
/// `before`, too.
inline Unpacked unpack(const LosslessCoder& coder, Content content, const Packed& packed,
                       const Bits& before) {
  constexpr std::size_t guard = 32;
  const Packed bytes(packed.begin(), packed.end());
  Bits room(before.size() + 2 * guard, 0xDEADBEEF);
  std::copy(before.begin(), before.end(), room.begin() + guard);
  auto* values = reinterpret_cast<float*>(room.data() + guard);
  Unpacked out;
  try {
    if (content == Content::weights)
      coder.unpack_weights(bytes.data(), bytes.size(), values, before.size());
    else
      coder.unpack_gradient(bytes.data(), bytes.size(), values, before.size());
  } catch (const CodingError& error) {
    out.error = error.what();
  }
  EXPECT_EQ(std::count(room.begin(), room.begin() + guard, 0xDEADBEEF), guard) << coder.name;
  EXPECT_EQ(std::count(room.end() - guard, room.end(), 0xDEADBEEF), guard) << coder.name;
  if (out.error.empty()) out.bits.assign(room.begin() + guard, room.end() - guard);
  return out;
}

inline std::uint32_t bits_of(float value) {
  std::uint32_t bits = 0;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

}  // namespace duplex::net
