// A tile of a sum of outer products, which tile_*.cpp compile for several processors.
#pragma once
#include <cstddef>
#include <cstring>
#include <utility>

#include "core/factors/tiles.h"

namespace duplex::factors {
namespace {

/// Adds one sample's products to all rows' sums. Rows are no loop, so that a compiler keeps the
/// sums in registers. `dy` is (tile_height).
template <class Lanes, std::size_t... row>
void add_sample(typename Lanes::Vector* low, typename Lanes::Vector* high, const float* dy,
                const typename Lanes::Vector& left, const typename Lanes::Vector& right,
                std::index_sequence<row...>) {
  ((Lanes::add_product(low[row], dy[row], left), Lanes::add_product(high[row], dy[row], right)),
   ...);
}

/// Computes a tile of tile_height rows and tile_width columns, in pieces of two vectors of columns,
/// whose sums a processor keeps in its registers. `dy` is (samples, tile_height), `x` (samples,
/// tile_width); rows of `to` are `stride` apart, and `here` columns of `rows` of them are written.
/// `Lanes` is how a processor computes: a type Vector of float32 values that begins as zeros, and
/// add_product(sum, factor, vector), with one rounding.
template <class Lanes>
void tile(const float* dy, const float* x, std::size_t samples, float* to, std::size_t stride,
          std::size_t rows, std::size_t here) {
  using Vector = typename Lanes::Vector;
  constexpr std::size_t lanes = sizeof(Vector) / sizeof(float);
  for (std::size_t begin = 0; begin < here; begin += 2 * lanes) {
    Vector low[tile_height] = {}, high[tile_height] = {};
    for (std::size_t k = 0; k < samples; ++k) {
      Vector left, right;
      std::memcpy(&left, x + k * tile_width + begin, sizeof left);
      std::memcpy(&right, x + k * tile_width + begin + lanes, sizeof right);
      add_sample<Lanes>(low, high, dy + k * tile_height, left, right,
                        std::make_index_sequence<tile_height>());
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
