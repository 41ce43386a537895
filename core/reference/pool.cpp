// Max and average pooling in plain loops: each output looks at the part of its window that lies on
// the map.
#include "core/reference/pool.h"

#include <cmath>
#include <vector>

#include "core/reference/rows.h"

namespace duplex::reference {
namespace {

/// The part of a window that lies on the map: rows [top, bottom), columns [left, right).
struct Patch {
  std::int64_t top, left, bottom, right;

  std::int64_t elements() const { return (bottom - top) * (right - left); }
};

Patch patch_of(const Window& window, const Shape& map, std::int64_t oy, std::int64_t ox) {
  const std::int64_t top = oy * window.stride_y - window.padding.top;
  const std::int64_t left = ox * window.stride_x - window.padding.left;
  constexpr std::int64_t zero = 0;
  return {std::max(top, zero), std::max(left, zero), std::min(top + window.height, map.h()),
          std::min(left + window.width, map.w())};
}

class ReferencePool : public Pool {
 public:
  ReferencePool(const PoolSpec& spec, const TensorDesc& x_desc) : spec_(spec) {
    x = x_desc;
    y = plain_desc(output_shape(spec, x.shape));
    if (spec.kind == PoolKind::max) argmax_.resize(static_cast<std::size_t>(y.shape.elements()));
  }

  void forward(Tensor& y_out, const Tensor& x_in) override {
    for_each_output([&](std::int64_t plane, std::int64_t output, const Patch& patch) {
      const float* map = x_in.data + plane;
      if (spec_.kind == PoolKind::max) {
        std::int64_t best = patch.top * x.shape.w() + patch.left;
        for_each_input(patch, [&](std::int64_t i) {
          if (map[i] > map[best] || std::isnan(map[i])) best = i;
        });
        argmax_[static_cast<std::size_t>(output)] = best;
        y_out.data[output] = map[best];
      } else {
        float sum = 0.0F;
        for_each_input(patch, [&](std::int64_t i) { sum += map[i]; });
        y_out.data[output] = sum / static_cast<float>(patch.elements());
      }
    });
  }

  void backward(Tensor& dx, const Tensor& dy) override {
    std::fill(dx.data, dx.data + dx.stored(), 0.0F);
    for_each_output([&](std::int64_t plane, std::int64_t output, const Patch& patch) {
      float* map = dx.data + plane;
      if (spec_.kind == PoolKind::max) {
        map[argmax_[static_cast<std::size_t>(output)]] += dy.data[output];
      } else {
        const float share = dy.data[output] / static_cast<float>(patch.elements());
        for_each_input(patch, [&](std::int64_t i) { map[i] += share; });
      }
    });
  }

 private:
  /// Calls visit(offset of the map in x, offset of the output in y, patch) for every output.
  template <typename Visit>
  void for_each_output(Visit visit) const {
    const std::int64_t map = x.shape.h() * x.shape.w();
    std::int64_t output = 0;
    for (std::int64_t plane = 0; plane < x.shape.n() * x.shape.c(); ++plane) {
      for (std::int64_t oy = 0; oy < y.shape.h(); ++oy) {
        for (std::int64_t ox = 0; ox < y.shape.w(); ++ox) {
          visit(plane * map, output++, patch_of(spec_.window, x.shape, oy, ox));
        }
      }
    }
  }

  /// Calls visit(offset in the map) for every element of the patch, in row-major order.
  template <typename Visit>
  void for_each_input(const Patch& patch, Visit visit) const {
    for (std::int64_t iy = patch.top; iy < patch.bottom; ++iy) {
      for (std::int64_t ix = patch.left; ix < patch.right; ++ix) visit(iy * x.shape.w() + ix);
    }
  }

  PoolSpec spec_;
  std::vector<std::int64_t>
      argmax_;  ///< The argmax of each output of the last forward: an offset in the map.
};

}  // namespace

std::unique_ptr<Pool> make_pool(const PoolSpec& spec, const TensorDesc& x) {
  return std::make_unique<ReferencePool>(spec, x);
}

}  // namespace duplex::reference
