// Unpacks chunks as PROTOCOL.md says it (Packed chunks), bit by bit and value by value: what
// net/coding is compared with. It takes whole chunks only, and has no idea of speed.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace duplex::net {

class ReferenceDecoder {
 public:
  explicit ReferenceDecoder(std::vector<std::uint8_t> chunk) : chunk_(std::move(chunk)) {}

  /// Returns the bits of the new weights; `before` are the bits of the old ones.
  std::vector<std::uint32_t> weights(const std::vector<std::uint32_t>& before) {
    return values(before.size(), [&](std::size_t i, int base, int symbol) {
      if (symbol == 3) return before[i];
      const int distance = symbol < 3 ? symbol : symbol - 1;
      const int exponent = static_cast<int>(before[i] >> 23 & 255);
      const int granted = std::min(32, std::max(0, base - exponent));
      std::uint64_t folded = 0;
      if (distance == 0) {
        folded = number(granted);
      } else {
        folded = number(granted + distance - 1);
        folded += std::uint64_t{1} << (granted + distance - 1);
      }
      const auto half = static_cast<std::int64_t>(folded / 2);
      return float_at(place_of(before[i]) + (folded % 2 == 0 ? half : -half - 1));
    });
  }

  std::vector<std::uint32_t> gradient(std::size_t count) {
    return values(count, [&](std::size_t, int base, int symbol) {
      if (symbol == 3) return std::uint32_t{0};
      const int distance = symbol < 3 ? symbol : symbol - 1;
      const auto mantissa = static_cast<std::uint32_t>(number(23));
      const auto sign = static_cast<std::uint32_t>(number(1));
      const int exponent = number(1) == 1 ? base + 1 + distance : base - distance;
      return sign << 31 | static_cast<std::uint32_t>(exponent) << 23 | mantissa;
    });
  }

  /// Returns whether the last value took the last bit of the chunk but for padding.
  bool at_end() const { return (bit_ + 7) / 8 == chunk_.size(); }

 private:
  /// Positive floats and +0 have the places from 0 on, -0 and the negative ones those from -1 down.
  static std::int64_t place_of(std::uint32_t bits) {
    const std::int64_t magnitude = bits & 0x7FFFFFFF;
    return bits >> 31 == 0 ? magnitude : -1 - magnitude;
  }
  /// Places go round: behind the last one comes the first.
  static std::uint32_t float_at(std::int64_t place) {
    const std::int64_t all = std::int64_t{1} << 32, half = all / 2;
    if (place >= half) place -= all;
    if (place < -half) place += all;
    return place >= 0 ? static_cast<std::uint32_t>(place)
                      : static_cast<std::uint32_t>(-1 - place) | 0x80000000;
  }

  std::uint64_t number(int bits) {
    std::uint64_t sum = 0;
    for (int i = 0; i < bits; ++i, ++bit_)
      sum += std::uint64_t{chunk_.at(bit_ / 8) >> (bit_ % 8) & 1U} << i;
    return sum;
  }

  template <class Value>
  std::vector<std::uint32_t> values(std::size_t count, const Value& value) {
    std::vector<std::uint32_t> all;
    bit_ = 8;
    while (all.size() < count) {
      const std::size_t here = std::min<std::size_t>(64, count - all.size());
      const bool raw_chunk = chunk_.at(0) == 0;
      const int base = raw_chunk ? 255 : static_cast<int>(number(8));
      if (base == 255) {
        for (std::size_t i = 0; i < here; ++i)
          all.push_back(static_cast<std::uint32_t>(number(32)));
        continue;
      }
      std::vector<int> symbols(here);
      for (int& symbol : symbols)
        while (number(1) == 0) ++symbol;
      for (const int symbol : symbols) all.push_back(value(all.size(), base, symbol));
    }
    return all;
  }

  std::vector<std::uint8_t> chunk_;
  std::size_t bit_ = 0;
};

}  // namespace duplex::net
