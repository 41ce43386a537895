#ifdef __x86_64__
#include <immintrin.h>

#include <cstddef>
#include <cstring>
#include <utility>

#include "core/factors/tiles.h"
// All that follows is for processors with these: compilers keep a vector whole only in a function
// that has them.
#ifdef __clang__
#pragma clang attribute push([[gnu::target("avx512f")]], apply_to = function)
#else
#pragma GCC target("avx512f")
#endif
#include "core/factors/tile.h"

namespace duplex::factors {
namespace {

struct Lanes {
  using Vector = __m512;
  [[gnu::always_inline]] static void add_product(Vector& sum, float factor, Vector vector) {
    sum = _mm512_fmadd_ps(_mm512_set1_ps(factor), vector, sum);
  }
};

}  // namespace

const Tile avx512_tile = tile<Lanes>;

}  // namespace duplex::factors
#ifdef __clang__
#pragma clang attribute pop
#endif
#endif
