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

std::vector<float> normal_numbers(std::size_t count, float width) {
  const RandomStream random(1, 0);
  std::vector<float> numbers(count);
  for (std::size_t i = 0; i < count; ++i) numbers[i] = width * random.normal(i);
  return numbers;
}

constexpr std::size_t count = 128 * 1024;  ///< Values of a chunk.

struct Chunk {
  std::vector<float> now, before, decoded;
  std::vector<std::uint8_t> coded, back;  ///< `back`: the weights before, coded against those now.
  std::size_t size = 0, back_size = 0;
};

Chunk chunk_of(Coding coding, Values what) {
  constexpr float weight = 0.03F, update = weight / 1400.0F;
  Chunk chunk;
  chunk.before = normal_numbers(count + 1, weight);
  chunk.now = chunk.before;
  const std::vector<float> drawn = normal_numbers(count + 1, update);
  // The numbers of one position are not those of the other.
  for (std::size_t i = 0; i < count; ++i)
    chunk.now[i] = (what == Values::weights ? chunk.before[i] : 0.0F) + drawn[i + 1];
  chunk.decoded = chunk.before;
  chunk.coded.resize(coded_bytes(coding, count) + coding_slack);
  if (coding == Coding::lossless && what == Values::weights) chunk.back = chunk.coded;
  return chunk;
}

CodingRate rate_of(Coding coding, Values what, std::size_t chunks) {
  constexpr std::size_t repeated = 64;
  std::vector<Chunk> all(chunks, chunk_of(coding, what));
  // Lossless weights need those before, in encoding and in the memory that they are decoded into.
  const bool differences = coding == Coding::lossless && what == Values::weights;
  const auto code = [&](Chunk& chunk) {
    chunk.size = differences ? encode_weights(chunk.now.data(), chunk.before.data(), count,
                                              chunk.coded.data())
                             : encode(coding, chunk.now.data(), count, chunk.coded.data());
  };
  const auto decode_from = [&](Chunk& chunk, const std::vector<std::uint8_t>& coded,
                               std::size_t size) {
    decode(coding, what, coded.data(), size, count, chunk.decoded.data());
  };
  for (Chunk& chunk : all) {
    code(chunk);
    if (differences)
      chunk.back_size =
          encode_weights(chunk.before.data(), chunk.now.data(), count, chunk.back.data());
  }
  const std::size_t rounds = std::max<std::size_t>(repeated / chunks, 2);
  const double bytes = static_cast<double>(coded_bytes(Coding::float32, count) * chunks * rounds);
  const auto each = [&](const auto& work) {
    return seconds_of([&] {
      for (std::size_t round = 0; round < rounds; ++round)
        for (Chunk& chunk : all) work(chunk, round);
    });
  };
  const double encoding = each([&](Chunk& chunk, std::size_t) { code(chunk); });
  const double decoding = each([&](Chunk& chunk, std::size_t round) {
    const bool back = differences && round % 2 == 1;  // There and back again.
    decode_from(chunk, back ? chunk.back : chunk.coded, back ? chunk.back_size : chunk.size);
  });
  return {bytes / encoding, bytes / decoding};
}

}  // namespace

CodingRate coding_rate(Coding coding, Values what) {
  constexpr std::size_t in_memory = 64;  // Chunks: 32 MiB of values, and as much of each buffer.
  const CodingRate cached = rate_of(coding, what, 1), uncached = rate_of(coding, what, in_memory);
  return {std::min(cached.encode, uncached.encode), std::min(cached.decode, uncached.decode)};
}

}  // namespace duplex::net
