#include "net/coding/coding_rate.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <functional>
#include <vector>

#include "core/clock.h"
#include "core/random.h"

namespace duplex::net {
namespace {

/// Median seconds of a call.
double seconds_of(const std::function<void()>& work) {
  std::array<double, 9> seconds{};
  for (double& took : seconds) {
    const auto begin = Clock::now();
    work();
    took = std::chrono::duration<double>(Clock::now() - begin).count();
  }
  std::sort(seconds.begin(), seconds.end());
  return seconds[seconds.size() / 2];
}

CodingRate rate_of(Coding coding, std::size_t chunks) {
  constexpr std::size_t count = 128 * 1024, repeated = 64;
  std::vector<float> values(count * chunks);
  RandomStream(1, 0).fill_uniform(values.data(), values.size());
  const std::size_t size = coded_bytes(coding, count);
  std::vector<std::uint8_t> coded(size * chunks);
  const std::size_t rounds = std::max<std::size_t>(repeated / chunks, 1);
  const double bytes = static_cast<double>(coded_bytes(Coding::float32, count) * chunks * rounds);
  const auto each = [&](const auto& work) {
    return seconds_of([&] {
      for (std::size_t round = 0; round < rounds; ++round)
        for (std::size_t i = 0; i < chunks; ++i) work(&values[i * count], &coded[i * size]);
    });
  };
  const double encoding =
      each([&](const float* from, std::uint8_t* to) { encode(coding, from, count, to); });
  const double decoding =
      each([&](float* to, const std::uint8_t* from) { decode(coding, from, count, to); });
  return {bytes / encoding, bytes / decoding};
}

}  // namespace

CodingRate coding_rate(Coding coding) {
  constexpr std::size_t in_memory = 256;  // Chunks: 128 MiB.
  const CodingRate cached = rate_of(coding, 1), uncached = rate_of(coding, in_memory);
  return {std::min(cached.encode, uncached.encode), std::min(cached.decode, uncached.decode)};
}

}  // namespace duplex::net
