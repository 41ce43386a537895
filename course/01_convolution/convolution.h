// Exercise 1: docs/course/01-convolution.md. The student writes convolution.cpp.
#pragma once
#include <cstdint>

namespace exercise {

/// The sizes of a convolution (2.7).
struct ConvShape {
  std::int64_t images = 1, channels = 1, height = 1, width = 1;  ///< These are the sizes of x.
  std::int64_t filters = 1;
  std::int64_t window = 1;   ///< Rows and columns that a filter looks at.
  std::int64_t stride = 1;   ///< Rows or columns of x from one output to the next.
  std::int64_t padding = 0;  ///< Rows and columns of zeros that x is thought to have on each side.

  std::int64_t out_height() const { return (height + 2 * padding - window) / stride + 1; }
  std::int64_t out_width() const { return (width + 2 * padding - window) / stride + 1; }
};

/// Overwrites y with the convolution of x by w, plus b. All are float32 without gaps, the last
/// index running fastest:
///   x [images][channels][height][width]
///   w [filters][channels][window][window]
///   b [filters]
///   y [images][filters][out_height()][out_width()]
void convolve(const ConvShape& shape, const float* x, const float* w, const float* b, float* y);

}  // namespace exercise
