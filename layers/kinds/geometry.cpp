#include "layers/kinds/geometry.h"

#include <algorithm>

namespace duplex {
namespace {

std::int64_t same_padding(std::int64_t in, std::int64_t kernel, std::int64_t stride) {
  if (stride < 1) return 0;  // The operation will refuse it.
  const std::int64_t out = (in + stride - 1) / stride;
  return std::max<std::int64_t>((out - 1) * stride + kernel - in, 0);
}

}  // namespace

Window Geometry::window(const Shape& x) const {
  switch (mode) {
    case Mode::whole:
      return {x.h(), x.w(), 1, 1, {}};
    case Mode::same: {
      const std::int64_t rows = same_padding(x.h(), kernel, stride);
      const std::int64_t columns = same_padding(x.w(), kernel, stride);
      return {kernel,
              kernel,
              stride,
              stride,
              {rows / 2, columns / 2, rows - rows / 2, columns - columns / 2}};
    }
    case Mode::padded:
      break;
  }
  return {kernel, kernel, stride, stride, {padding, padding, padding, padding}};
}

std::string Geometry::str(const Shape& x) const {
  const Window w = window(x);
  return std::to_string(w.height) + "x" + std::to_string(w.width) + "/" +
         std::to_string(w.stride_y);
}

Geometry same(std::int64_t kernel, std::int64_t stride) {
  return {kernel, stride, 0, Geometry::Mode::same};
}
Geometry valid(std::int64_t kernel, std::int64_t stride) {
  return padded(kernel, stride, 0);
}
Geometry padded(std::int64_t kernel, std::int64_t stride, std::int64_t padding) {
  return {kernel, stride, padding, Geometry::Mode::padded};
}
Geometry whole_map() {
  return {1, 1, 0, Geometry::Mode::whole};
}

}  // namespace duplex
