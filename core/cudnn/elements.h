// Element by element: what kernels of activation, addition, concatenation, dropout, conversion and
// the optimisers do with one element. `i` is an offset in the storage of the output.
#pragma once
#include <cmath>
#include <cstdint>

#include "core/cudnn/view.h"
#include "core/random.h"

namespace duplex::cudnn {

struct Fill {
  float* to;
  float value;
  DUPLEX_PORTABLE void operator()(std::uint32_t i) const { to[i] = value; }
};

struct Ripple {
  float* to;
  DUPLEX_PORTABLE void operator()(std::uint32_t i) const {
    to[i] = RandomStream(0, 0).uniform(i) - 0.5F;
  }
};

struct Accumulate {
  float* to;
  const float* from;
  DUPLEX_PORTABLE void operator()(std::uint32_t i) const { to[i] += from[i]; }
};

/// Between two layouts of equal extents.
struct Convert {
  View to_view, from_view;
  float* to;
  const float* from;
  DUPLEX_PORTABLE void operator()(std::uint32_t i) const {
    to[i] = from[from_view.offset(to_view.place(i))];
  }
};

/// Likewise, but the map of `from` begins at row `down`, column `right` of that of `to`.
struct MoveMap {
  View to_view, from_view;
  float* to;
  const float* from;
  std::int32_t down, right;
  DUPLEX_PORTABLE void operator()(std::uint32_t i) const {
    Place place = to_view.place(i);
    place.y -= static_cast<std::uint32_t>(down);
    place.x -= static_cast<std::uint32_t>(right);
    // Before the first row or column, the difference wraps around to a large number.
    const bool inside = place.y < from_view.h && place.x < from_view.w;
    to[i] = inside ? from[from_view.offset(place)] : 0.0F;
  }
};

/// (2.3)
DUPLEX_PORTABLE inline float relu(float x) {
  return x < 0.0F ? 0.0F : x;  // What is no number stays so.
}

struct Relu {
  float* y;
  const float* x;
  DUPLEX_PORTABLE void operator()(std::uint32_t i) const { y[i] = relu(x[i]); }
};

/// (3.6)
struct ReluBackward {
  float* dx;
  const float *dy, *y;
  DUPLEX_PORTABLE void operator()(std::uint32_t i) const { dx[i] = y[i] > 0.0F ? dy[i] : 0.0F; }
};

/// (2.4)
struct Sigmoid {
  float* y;
  const float* x;
  DUPLEX_PORTABLE void operator()(std::uint32_t i) const { y[i] = 1.0F / (1.0F + expf(-x[i])); }
};

/// (3.7)
struct SigmoidBackward {
  float* dx;
  const float *dy, *y;
  DUPLEX_PORTABLE void operator()(std::uint32_t i) const { dx[i] = dy[i] * y[i] * (1.0F - y[i]); }
};

/// In place.
struct AddBias {
  View view;
  float* y;
  const float* bias;
  bool rectified;
  DUPLEX_PORTABLE void operator()(std::uint32_t i) const {
    const float sum = y[i] + bias[view.channel(i)];
    y[i] = rectified ? relu(sum) : sum;
  }
};

/// y has the layout of a.
struct Sum {
  View a_view, b_view;
  float* y;
  const float *a, *b;
  bool same, rectified;
  DUPLEX_PORTABLE void operator()(std::uint32_t i) const {
    const float sum = a[i] + b[same ? i : b_view.offset(a_view.place(i))];
    y[i] = rectified ? relu(sum) : sum;
  }
};

/// Up to `most` inputs, summed in their order; `y` null: no mask.
struct MaskedSum {
  static constexpr int most = 8;
  float* out;
  const float* y;
  const float* inputs[most];
  int count;
  DUPLEX_PORTABLE void operator()(std::uint32_t i) const {
    float sum = 0.0F;
    for (int k = 0; k < count; ++k) sum += inputs[k][i];
    out[i] = y == nullptr || y[i] > 0.0F ? sum : 0.0F;
  }
};

/// Puts x, whose channels begin at `first`, into y: for every element of x.
struct IntoSlice {
  View y_view, x_view;
  float* y;
  const float* x;
  std::uint32_t first;
  DUPLEX_PORTABLE void operator()(std::uint32_t i) const {
    Place place = x_view.place(i);
    place.c += first;
    y[y_view.offset(place)] = x[i];
  }
};

/// The way back: for every element of dx. `y` null: no mask.
struct FromSlice {
  View y_view, x_view;
  float* dx;
  const float *dy, *y;
  std::uint32_t first;
  DUPLEX_PORTABLE void operator()(std::uint32_t i) const {
    Place place = x_view.place(i);
    place.c += first;
    const std::uint32_t at = y_view.offset(place);
    dx[i] = y == nullptr || y[at] > 0.0F ? dy[at] : 0.0F;
  }
};

/// Draws as core/operations.h's DropoutDraw says, in forward and again in backward: no mask is
/// kept.
struct Drop {
  View view;
  float* to;
  const float* from;
  float rate, kept;                   ///< kept: 1 / (1 - rate).
  std::uint64_t seed, stream, first;  ///< first: the index of the batch's first draw.
  DUPLEX_PORTABLE void operator()(std::uint32_t i) const {
    const std::uint32_t logical =
        view.order == Order::nchw ? i : View{view.n, view.c, view.h, view.w}.offset(view.place(i));
    to[i] = RandomStream(seed, stream).uniform(first + logical) < rate ? 0.0F : from[i] * kept;
  }
};

}  // namespace duplex::cudnn
