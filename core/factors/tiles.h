// The innermost step of OuterProducts, for several processors. All compute the same bits.
#pragma once
#include <cstddef>

namespace duplex::factors {

constexpr std::size_t tile_height = 6, tile_width = 32;  ///< Rows and columns.

/// Overwrites `rows` rows of `here` values at `to`, which lie `stride` apart, with the sums over
/// the samples of dy x^T, with one rounding of each product and sum (fma). `dy` is (samples,
/// tile_height), `x` (samples, tile_width).
using Tile = void (*)(const float* dy, const float* x, std::size_t samples, float* to,
                      std::size_t stride, std::size_t rows, std::size_t here);

extern const Tile plain_tile;
#ifdef __x86_64__
extern const Tile sse2_tile;    ///< Runs on every x86-64, and is slow.
extern const Tile fma_tile;     ///< Needs AVX and FMA.
extern const Tile avx512_tile;  ///< Needs AVX-512.
#endif

}  // namespace duplex::factors
