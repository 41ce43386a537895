// Exercise 2: docs/course/02-pooling.md. The student writes pooling.cpp.
#pragma once
#include <cstdint>

namespace exercise {

/// The sizes of a max pooling without padding.
struct PoolShape {
  std::int64_t maps = 1, height = 1, width = 1;  ///< Maps: images times channels.
  std::int64_t window = 1, stride = 1;

  std::int64_t out_height() const { return (height - window) / stride + 1; }
  std::int64_t out_width() const { return (width - window) / stride + 1; }
};

/// Overwrites dx, the gradient of the loss by x, from dy, that by the outputs. All are float32
/// without gaps, the last index running fastest:
///   x, dx [maps][height][width]
///   dy    [maps][out_height()][out_width()]
/// Among equal values of a window the first one in row-major order is its maximum.
void max_pool_backward(const PoolShape& shape, const float* x, const float* dy, float* dx);

}  // namespace exercise
