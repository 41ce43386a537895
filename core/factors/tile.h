// A tile of a sum of outer products, which tile_*.cpp compile for several processors. Compilers
// turn its vectors into a processor's where that is the target at this place.
#pragma once
#include <cstddef>
#include <cstring>

#include "core/factors/tiles.h"

namespace duplex::factors {
namespace {

template <int lanes>
struct Vector {
  typedef float Type __attribute__((vector_size(lanes * sizeof(float))));
};

/// Computes a tile of tile_height rows and tile_width columns, in pieces of two vectors of `lanes`
/// columns, whose sums a processor keeps in its registers. `dy` is (samples, tile_height), `x`
/// (samples, tile_width); rows of `to` are `stride` apart, and `here` columns of `rows` of them are
/// written.
template <int lanes>
[[gnu::always_inline]] inline void tile(const float* dy, const float* x, std::size_t samples,
                                        float* to, std::size_t stride, std::size_t rows,
                                        std::size_t here) {
  using Lanes = typename Vector<lanes>::Type;
  for (std::size_t begin = 0; begin < here; begin += 2 * lanes) {
    Lanes low[tile_height] = {}, high[tile_height] = {};
    for (std::size_t k = 0; k < samples; ++k) {
      Lanes left, right;
      std::memcpy(&left, x + k * tile_width + begin, sizeof left);
      std::memcpy(&right, x + k * tile_width + begin + lanes, sizeof right);
#pragma GCC unroll 6
      for (std::size_t r = 0; r < tile_height; ++r) {
        const float factor = dy[k * tile_height + r];
        low[r] += factor * left;
        high[r] += factor * right;
      }
    }
    for (std::size_t r = 0; r < rows; ++r) {
      float both[2 * lanes];
      std::memcpy(both, &low[r], sizeof low[r]);
      std::memcpy(both + lanes, &high[r], sizeof high[r]);
      const std::size_t left = here - begin;
      std::memcpy(to + r * stride + begin, both,
                  (left < 2 * lanes ? left : 2 * lanes) * sizeof(float));
    }
  }
}

}  // namespace
}  // namespace duplex::factors
