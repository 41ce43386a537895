// Defines windows as models write them: `same(7, 2)`, `valid(5, 3)`, `padded(11, 4, 2)`,
// `whole_map()`.
#pragma once
#include "core/operations.h"

namespace duplex {

struct Geometry {
  enum class Mode { same, padded, whole };

  std::int64_t kernel = 1, stride = 1, padding = 0;
  Mode mode = Mode::padded;

  /// Returns the window on maps of x's height and width.
  Window window(const Shape& x) const;
  std::string str(const Shape& x) const;  ///< "7x7/2".
};

/// Gives an output of ceil(in / stride), as TensorFlow's "same" does. If the padding is odd, the
/// extra row is at the bottom and the extra column at the right.
Geometry same(std::int64_t kernel, std::int64_t stride = 1);
/// Adds no padding, and drops windows that do not fit.
Geometry valid(std::int64_t kernel, std::int64_t stride = 1);
/// Adds `padding` on all four sides.
Geometry padded(std::int64_t kernel, std::int64_t stride, std::int64_t padding);
/// Puts one window over the whole map.
Geometry whole_map();

}  // namespace duplex
