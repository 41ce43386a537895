// Element by element: what kernels of activation, addition, concatenation, dropout, conversion and
// the optimisers do with one element. `i` is an offset in the storage of the output.
#pragma once
#include <cmath>
#include <cstdint>

#include "core/cudnn/view.h"
#include "core/random.h"

namespace duplex::cudnn {

template <class Value>
struct Fill {
  Value* to;
  float value;
  DUPLEX_PORTABLE void operator()(std::uint32_t i) const { to[i] = value; }
};

template <class Value>
struct Ripple {
  Value* to;
  DUPLEX_PORTABLE void operator()(std::uint32_t i) const {
    to[i] = RandomStream(0, 0).uniform(i) - 0.5F;
  }
};

template <class Value>
struct Accumulate {
  Value* to;
  const Value* from;
  DUPLEX_PORTABLE void operator()(std::uint32_t i) const { to[i] = float{to[i]} + float{from[i]}; }
};

/// Between two layouts of equal extents.
template <class To, class From>
struct Convert {
  View to_view, from_view;
  To* to;
  const From* from;
  DUPLEX_PORTABLE void operator()(std::uint32_t i) const {
    to[i] = float{from[from_view.offset(to_view.place(i))]};
  }
};

/// Likewise, but the map of `from` begins at row `down`, column `right` of that of `to`.
template <class To, class From>
struct MoveMap {
  View to_view, from_view;
  To* to;
  const From* from;
  std::int32_t down, right;
  DUPLEX_PORTABLE void operator()(std::uint32_t i) const {
    Place place = to_view.place(i);
    place.y -= static_cast<std::uint32_t>(down);
    place.x -= static_cast<std::uint32_t>(right);
    // Before the first row or column, the difference wraps around to a large number.
    const bool inside = place.y < from_view.h && place.x < from_view.w;
    to[i] = inside ? float{from[from_view.offset(place)]} : 0.0F;
  }
};

/// (2.3)
DUPLEX_PORTABLE inline float relu(float x) {
  return x < 0.0F ? 0.0F : x;  // What is no number stays so.
}

template <class Value>
struct Relu {
  Value* y;
  const Value* x;
  DUPLEX_PORTABLE void operator()(std::uint32_t i) const { y[i] = relu(x[i]); }
};

/// (3.6)
template <class Value>
struct ReluBackward {
  Value* dx;
  const Value *dy, *y;
  DUPLEX_PORTABLE void operator()(std::uint32_t i) const {
    dx[i] = float{y[i]} > 0.0F ? float{dy[i]} : 0.0F;
  }
};

/// (2.4)
template <class Value>
struct Sigmoid {
  Value* y;
  const Value* x;
  DUPLEX_PORTABLE void operator()(std::uint32_t i) const {
    y[i] = 1.0F / (1.0F + expf(-float{x[i]}));
  }
};

/// (3.7)
template <class Value>
struct SigmoidBackward {
  Value* dx;
  const Value *dy, *y;
  DUPLEX_PORTABLE void operator()(std::uint32_t i) const {
    const float value = y[i];
    dx[i] = float{dy[i]} * value * (1.0F - value);
  }
};

/// In place.
template <class Value>
struct AddBias {
  View view;
  Value* y;
  const float* bias;
  bool rectified;
  DUPLEX_PORTABLE void operator()(std::uint32_t i) const {
    const float sum = float{y[i]} + bias[view.channel(i)];
    y[i] = rectified ? relu(sum) : sum;
  }
};

/// y has the layout of a.
template <class Value, class Other>
struct Sum {
  View a_view, b_view;
  Value* y;
  const Value* a;
  const Other* b;
  bool same, rectified;
  DUPLEX_PORTABLE void operator()(std::uint32_t i) const {
    const float sum = float{a[i]} + float{b[same ? i : b_view.offset(a_view.place(i))]};
    y[i] = rectified ? relu(sum) : sum;
  }
};

constexpr int most_summed = 8;

/// Up to `most` inputs, summed in their order; `y` null: no mask.
template <class Value>
struct MaskedSum {
  static constexpr int most = most_summed;
  Value* out;
  const Value* y;
  const Value* inputs[most];
  int count;
  DUPLEX_PORTABLE void operator()(std::uint32_t i) const {
    float sum = 0.0F;
    for (int k = 0; k < count; ++k) sum += float{inputs[k][i]};
    out[i] = y == nullptr || float{y[i]} > 0.0F ? sum : 0.0F;
  }
};

/// Puts x, whose channels begin at `first`, into y: for every element of x.
template <class To, class From>
struct IntoSlice {
  View y_view, x_view;
  To* y;
  const From* x;
  std::uint32_t first;
  DUPLEX_PORTABLE void operator()(std::uint32_t i) const {
    Place place = x_view.place(i);
    place.c += first;
    y[y_view.offset(place)] = float{x[i]};
  }
};

/// The way back: for every element of dx. `y` null: no mask.
template <class To, class From>
struct FromSlice {
  View y_view, x_view;
  To* dx;
  const From *dy, *y;
  std::uint32_t first;
  DUPLEX_PORTABLE void operator()(std::uint32_t i) const {
    Place place = x_view.place(i);
    place.c += first;
    const std::uint32_t at = y_view.offset(place);
    dx[i] = y == nullptr || float{y[at]} > 0.0F ? float{dy[at]} : 0.0F;
  }
};

/// Draws as core/operations.h's DropoutDraw says, in forward and again in backward: no mask is
/// kept.
template <class Value>
struct Drop {
  View view;
  Value* to;
  const Value* from;
  float rate, kept;                   ///< kept: 1 / (1 - rate).
  std::uint64_t seed, stream, first;  ///< first: the index of the batch's first draw.
  DUPLEX_PORTABLE void operator()(std::uint32_t i) const {
    const std::uint32_t logical =
        view.order == Order::nchw ? i : View{view.n, view.c, view.h, view.w}.offset(view.place(i));
    to[i] =
        RandomStream(seed, stream).uniform(first + logical) < rate ? 0.0F : float{from[i]} * kept;
  }
};

}  // namespace duplex::cudnn
