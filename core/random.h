// Counter-based random numbers (Philox4x32-10; Salmon et al., "Parallel Random Numbers: As Easy as
// 1, 2, 3", SC'11). A draw is a pure function of key and counter: it gives the same bits on every
// machine, in any order, whatever the number of threads or ranks. The constexpr functions are for
// kernels, too. tests/oracle/philox.py computes the same numbers.
#pragma once
#include <array>
#include <cstdint>
#include <string_view>

namespace duplex {

using PhiloxCounter = std::array<std::uint32_t, 4>;
using PhiloxKey = std::array<std::uint32_t, 2>;

constexpr PhiloxCounter philox(PhiloxCounter c, PhiloxKey key) {
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

/// Returns the 64-bit FNV-1a hash of a name. It is the stream of what bears that name (a parameter,
/// a dropout layer).
std::uint64_t stream_of(std::string_view name);

/// One sequence of draws, addressed by index. Key = low and high word of `seed`; counter =
/// (index / 4 low, index / 4 high ^ stream high, stream low, sub).
class RandomStream {
 public:
  constexpr RandomStream(std::uint64_t seed, std::uint64_t stream, std::uint32_t sub = 0)
      : seed_(seed), stream_(stream), sub_(sub) {}

  constexpr std::uint32_t bits(std::uint64_t index) const { return block(index / 4)[index % 4]; }
  /// Returns a number in [0, 1): the top 24 bits times 2^-24, which is exact in float.
  constexpr float uniform(std::uint64_t index) const {
    return static_cast<float>(bits(index) >> 8) * 0x1p-24f;
  }
  /// Returns a number of the normal distribution around 0 of width 1: Box and Muller's transform of
  /// uniform(2 index) and the next. Its last bits depend on the system's logarithm and cosine.
  float normal(std::uint64_t index) const;
  /// Returns a number in [0, bound), by multiply-shift of 32 bits; bound > 0.
  std::uint32_t below(std::uint64_t index, std::uint32_t bound) const;
  /// values[i] = uniform(first + i), one block of Philox for four values.
  void fill_uniform(float* values, std::uint64_t count, std::uint64_t first = 0) const;

 private:
  constexpr PhiloxCounter block(std::uint64_t number) const {
    return philox(
        {static_cast<std::uint32_t>(number),
         static_cast<std::uint32_t>(number >> 32) ^ static_cast<std::uint32_t>(stream_ >> 32),
         static_cast<std::uint32_t>(stream_), sub_},
        {static_cast<std::uint32_t>(seed_), static_cast<std::uint32_t>(seed_ >> 32)});
  }

  std::uint64_t seed_;
  std::uint64_t stream_;
  std::uint32_t sub_;
};

}  // namespace duplex
