// A product and a sum with one rounding, on any processor.
#pragma once
#include <cstdint>
#include <cstring>

namespace duplex::factors {

/// Returns a * b + c, rounded once, to the nearest float32 and to even: what fma(3) of C returns,
/// and several times as fast where the processor has no such instruction.
inline float fused(float a, float b, float c) {
// Not every clang defines the first where the processor has the instruction.
#if defined(__FP_FAST_FMAF) || defined(__FMA__) || defined(__ARM_FEATURE_FMA)
  return __builtin_fmaf(a, b, c);
#else
  // The product is exact in float64. The sum is rounded to odd there, which float32's rounding
  // cannot tell from the exact sum (Boldo and Melquiond 2008, "Emulation of a FMA and
  // Correctly-Rounded Sums: Proved Algorithms Using Rounding to Odd").
  const double product = double{a} * double{b};
  double sum = product + double{c};
  const double taken = sum - product;
  const double error = (product - (sum - taken)) + (double{c} - taken);  // 2Sum: the exact rest.
  std::int64_t bits;
  std::memcpy(&bits, &sum, sizeof bits);
  const bool rounded = error < 0 || error > 0;  // It is no number where the sum is infinite.
  if (rounded && (bits & 1) == 0) bits += (error > 0) == (sum > 0) ? 1 : -1;
  std::memcpy(&sum, &bits, sizeof sum);
  return static_cast<float>(sum);
#endif
}

}  // namespace duplex::factors
