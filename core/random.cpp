#include "core/random.h"

namespace duplex {

PhiloxCounter philox(PhiloxCounter c, PhiloxKey key) {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t p0 = std::uint64_t{0xD2511F53u} * c[0];
    const std::uint64_t p1 = std::uint64_t{0xCD9E8D57u} * c[2];
    c = {static_cast<std::uint32_t>(p1 >> 32) ^ c[1] ^ key[0], static_cast<std::uint32_t>(p1),
         static_cast<std::uint32_t>(p0 >> 32) ^ c[3] ^ key[1], static_cast<std::uint32_t>(p0)};
    key[0] += 0x9E3779B9u;
    key[1] += 0xBB67AE85u;
  }
  return c;
}

std::uint64_t stream_of(std::string_view name) {
  std::uint64_t hash = 0xCBF29CE484222325u;
  for (char letter : name) {
    hash ^= static_cast<unsigned char>(letter);
    hash *= 0x100000001B3u;
  }
  return hash;
}

PhiloxCounter RandomStream::block(std::uint64_t number) const {
  return philox(
      {static_cast<std::uint32_t>(number),
       static_cast<std::uint32_t>(number >> 32) ^ static_cast<std::uint32_t>(stream_ >> 32),
       static_cast<std::uint32_t>(stream_), sub_},
      {static_cast<std::uint32_t>(seed_), static_cast<std::uint32_t>(seed_ >> 32)});
}

std::uint32_t RandomStream::bits(std::uint64_t index) const {
  return block(index / 4)[index % 4];
}

float RandomStream::uniform(std::uint64_t index) const {
  return static_cast<float>(bits(index) >> 8) * 0x1p-24f;
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
