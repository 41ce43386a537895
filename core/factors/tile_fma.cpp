#ifdef __x86_64__
#include <immintrin.h>

#include <cstddef>
#include <cstring>
#include <utility>

#include "core/factors/tiles.h"
// All that follows is for processors with these: compilers keep a vector whole only in a function
// that has them.
#ifdef __clang__
#pragma clang attribute push([[gnu::target("avx,fma")]], apply_to = function)
#else
#pragma GCC target("avx,fma")
#endif
#include "core/factors/tile.h"

namespace duplex::factors {
namespace {

struct Lanes {
  using Vector = __m256;
  [[gnu::always_inline]] static void add_product(Vector& sum, float factor, Vector vector) {
    sum = _mm256_fmadd_ps(_mm256_set1_ps(factor), vector, sum);
  }
};

}  // namespace

const Tile fma_tile = tile<Lanes>;

}  // namespace duplex::factors
#ifdef __clang__
#pragma clang attribute pop
#endif
#endif
