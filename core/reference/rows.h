// The plain loops share row-major offsets, and the three inner loops along contiguous memory that a
// compiler turns into vector instructions.
#pragma once
#include <algorithm>
#include <cstdint>

#include "core/shape.h"

namespace duplex::reference {

/// Returns the offset of element (n, c, h, w) of a plain tensor.
inline std::int64_t at(const Shape& shape, std::int64_t n, std::int64_t c, std::int64_t h,
                       std::int64_t w) {
  return ((n * shape.c() + c) * shape.h() + h) * shape.w() + w;
}

/// to[i] += factor * from[i * stride]. The two do not overlap.
inline void add_scaled(float* __restrict to, const float* __restrict from, float factor,
                       std::int64_t count, std::int64_t stride = 1) {
  if (stride == 1) {
    for (std::int64_t i = 0; i < count; ++i) to[i] += factor * from[i];
  } else {
    for (std::int64_t i = 0; i < count; ++i) to[i] += factor * from[i * stride];
  }
}

/// to[i * stride] += factor * from[i]. The two do not overlap.
inline void scatter_scaled(float* __restrict to, const float* __restrict from, float factor,
                           std::int64_t count, std::int64_t stride) {
  if (stride == 1) return add_scaled(to, from, factor, count);
  for (std::int64_t i = 0; i < count; ++i) to[i * stride] += factor * from[i];
}

/// Returns the sum of a[i] * b[i * stride]. It keeps eight partial sums, because a compiler may not
/// reorder a single one.
inline float dot(const float* a, const float* b, std::int64_t count, std::int64_t stride = 1) {
  constexpr std::int64_t lanes = 8;
  float sums[lanes] = {};
  std::int64_t i = 0;
  if (stride == 1) {
    for (; i + lanes <= count; i += lanes) {
      for (std::int64_t lane = 0; lane < lanes; ++lane) sums[lane] += a[i + lane] * b[i + lane];
    }
  }
  float sum = 0.0F;
  for (; i < count; ++i) sum += a[i] * b[i * stride];
  for (float part : sums) sum += part;
  return sum;
}

}  // namespace duplex::reference
