// The tile for x86-64's that have no instruction for a product and a sum with one rounding.
#ifdef __x86_64__
#include <emmintrin.h>

#include "core/factors/fused.h"
#include "core/factors/tile.h"

namespace duplex::factors {
namespace {

/// Returns a mask of the sums that float32's rounding after float64's may get wrong: those half way
/// between two values of float32, and those too small for its full precision.
[[gnu::always_inline]] inline __m128i doubtful(__m128d sums) {
  const __m128i bits = _mm_castpd_si128(sums);
  // Both numbers of a pair are for the lower and the upper half of a float64.
  const auto halves = [](int low, int high) { return _mm_set_epi32(high, low, high, low); };
  const __m128i behind = _mm_and_si128(bits, halves((1 << 29) - 1, 0)),
                exponent = _mm_and_si128(bits, halves(0, 0x7ff00000));
  const __m128i half_way = _mm_cmpeq_epi32(behind, halves(1 << 28, 1)),
                small = _mm_cmplt_epi32(exponent, halves(0, (1023 - 126) << 20)),
                zero = _mm_castpd_si128(_mm_cmpeq_pd(sums, _mm_setzero_pd()));
  return _mm_or_si128(half_way, _mm_andnot_si128(zero, small));
}

struct Lanes {
  using Vector = __m128;

  [[gnu::always_inline]] static void add_product(Vector& sum, float factor, Vector vector) {
    // Products are exact in float64.
    const __m128d times = _mm_set1_pd(double{factor});
    const __m128d low = _mm_add_pd(_mm_mul_pd(times, _mm_cvtps_pd(vector)), _mm_cvtps_pd(sum));
    const __m128d high = _mm_add_pd(_mm_mul_pd(times, _mm_cvtps_pd(_mm_movehl_ps(vector, vector))),
                                    _mm_cvtps_pd(_mm_movehl_ps(sum, sum)));
    if (_mm_movemask_epi8(_mm_or_si128(doubtful(low), doubtful(high))) == 0)
      sum = _mm_movelh_ps(_mm_cvtpd_ps(low), _mm_cvtpd_ps(high));
    else
      sum = one_by_one(sum, factor, vector);
  }

  [[gnu::noinline]] static __m128 one_by_one(__m128 sum, float factor, __m128 vector) {
    for (int i = 0; i < 4; ++i) sum[i] = fused(factor, vector[i], sum[i]);
    return sum;
  }
};

}  // namespace

const Tile sse2_tile = tile<Lanes>;

}  // namespace duplex::factors
#endif
