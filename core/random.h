// Counter-based random numbers (Philox4x32-10; Salmon et al., "Parallel Random Numbers: As Easy as
// 1, 2, 3", SC'11). A draw is a pure function of key and counter: it gives the same bits on every
// machine, in any order, whatever the number of threads or ranks. tests/oracle/philox.py is its
// twin.
#pragma once
#include <array>
#include <cstdint>
#include <string_view>

namespace duplex {

using PhiloxCounter = std::array<std::uint32_t, 4>;
using PhiloxKey = std::array<std::uint32_t, 2>;

PhiloxCounter philox(PhiloxCounter counter, PhiloxKey key);

/// 64-bit FNV-1a of a name: the stream of what bears that name (a parameter, a dropout layer).
std::uint64_t stream_of(std::string_view name);

/// One sequence of draws, addressed by index. Key = low and high word of `seed`; counter =
/// (index / 4 low, index / 4 high ^ stream high, stream low, sub).
class RandomStream {
 public:
  RandomStream(std::uint64_t seed, std::uint64_t stream, std::uint32_t sub = 0)
      : seed_(seed), stream_(stream), sub_(sub) {}

  std::uint32_t bits(std::uint64_t index) const;
  /// In [0, 1): the top 24 bits times 2^-24, so exact in float.
  float uniform(std::uint64_t index) const;
  /// In [0, bound), by multiply-shift of 32 bits; bound > 0.
  std::uint32_t below(std::uint64_t index, std::uint32_t bound) const;
  /// values[i] = uniform(first + i), one block of Philox for four values.
  void fill_uniform(float* values, std::uint64_t count, std::uint64_t first = 0) const;

 private:
  PhiloxCounter block(std::uint64_t number) const;

  std::uint64_t seed_;
  std::uint64_t stream_;
  std::uint32_t sub_;
};

}  // namespace duplex
