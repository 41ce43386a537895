// The bodies of the element-wise kernels: what activation, addition, concatenation, dropout and
// conversion do with one element, or with N that lie side by side (vector.h). `i` is an offset in
// the storage of the output.
//
// A body that takes groups says so: where body.grouped() is true and i is a multiple of `group`,
// one call of body.operator()<group>(i) does the work of body(i) to body(i + group - 1).
#pragma once
#include <cmath>
#include <cstdint>

#include "core/cudnn/kernels/vector.h"
#include "core/random.h"

namespace duplex::cudnn {

template <class Value>
struct Fill {
  Value* to;
  float value;

  static constexpr int group = group_of<Value>;
  bool grouped() const { return aligned<group>(to); }
  template <int N = 1>
  DUPLEX_PORTABLE void operator()(std::uint32_t i) const {
    store(to + i, broadcast<N>(value));
  }
};

/// Sets *found to 1 where an element is not a finite number.
template <class Value>
struct NotFinite {
  std::uint32_t* found;
  const Value* from;

  static constexpr int group = group_of<Value>;
  bool grouped() const { return aligned<group>(from); }
  template <int N = 1>
  DUPLEX_PORTABLE void operator()(std::uint32_t i) const {
    const Floats<N> values = load<N>(from + i);
    bool finite = true;
    for (int k = 0; k < N; ++k) finite = finite && values[k] * 0.0F == 0.0F;
    if (!finite) *found = 1;
  }
};

template <class Value>
struct TestPattern {
  Value* to;
  std::uint64_t number;
  DUPLEX_PORTABLE void operator()(std::uint32_t i) const {
    to[i] = RandomStream(0, number).uniform(i) - 0.5F;
  }
};

template <class Value>
struct Accumulate {
  Value* to;
  const Value* from;

  static constexpr int group = group_of<Value>;
  bool grouped() const { return aligned<group>(to, from); }
  template <int N = 1>
  DUPLEX_PORTABLE void operator()(std::uint32_t i) const {
    const auto sum = [](float a, float b) { return a + b; };
    store(to + i, map(sum, load<N>(to + i), load<N>(from + i)));
  }
};

/// Converts between two layouts of equal extents.
template <class To, class From>
struct Convert {
  View to_view, from_view;
  To* to;
  const From* from;
  bool same;  ///< The two have the same layout.

  static constexpr int group = group_of<To, From>;
  bool grouped() const { return same && aligned<group>(to, from); }
  template <int N = 1>
  DUPLEX_PORTABLE void operator()(std::uint32_t i) const {
    store(to + i, load<N>(from + (N > 1 || same ? i : from_view.offset(to_view.coord(i)))));
  }
};

/// Converts, too, but the map of `from` begins at row `down`, column `right` of that of `to`, which
/// is zero where `from` has nothing.
template <class To, class From>
struct MoveMap {
  View to_view, from_view;
  To* to;
  const From* from;
  std::int32_t down, right;
  DUPLEX_PORTABLE void operator()(std::uint32_t i) const {
    Coord at = to_view.coord(i);
    at.y -= static_cast<std::uint32_t>(down);
    at.x -= static_cast<std::uint32_t>(right);
    // Before the first row or column, the difference wraps around to a large number.
    const bool inside = at.y < from_view.h && at.x < from_view.w;
    to[i] = inside ? float{from[from_view.offset(at)]} : 0.0F;
  }
};

/// ReLU (2.3).
DUPLEX_PORTABLE inline float relu(float x) {
  return x < 0.0F ? 0.0F : x;  // NaN stays NaN.
}

template <class Value>
struct Relu {
  Value* y;
  const Value* x;

  static constexpr int group = group_of<Value>;
  bool grouped() const { return aligned<group>(y, x); }
  template <int N = 1>
  DUPLEX_PORTABLE void operator()(std::uint32_t i) const {
    store(y + i, map([](float value) { return relu(value); }, load<N>(x + i)));
  }
};

/// The gradient of ReLU (3.6).
template <class Value>
struct ReluBackward {
  Value* dx;
  const Value *dy, *y;

  static constexpr int group = group_of<Value>;
  bool grouped() const { return aligned<group>(dx, dy, y); }
  template <int N = 1>
  DUPLEX_PORTABLE void operator()(std::uint32_t i) const {
    const auto masked = [](float gradient, float by) { return by > 0.0F ? gradient : 0.0F; };
    store(dx + i, map(masked, load<N>(dy + i), load<N>(y + i)));
  }
};

/// Sigmoid (2.4).
template <class Value>
struct Sigmoid {
  Value* y;
  const Value* x;

  static constexpr int group = group_of<Value>;
  bool grouped() const { return aligned<group>(y, x); }
  template <int N = 1>
  DUPLEX_PORTABLE void operator()(std::uint32_t i) const {
    const auto sigmoid = [](float value) { return 1.0F / (1.0F + expf(-value)); };
    store(y + i, map(sigmoid, load<N>(x + i)));
  }
};

/// The gradient of sigmoid (3.7).
template <class Value>
struct SigmoidBackward {
  Value* dx;
  const Value *dy, *y;

  static constexpr int group = group_of<Value>;
  bool grouped() const { return aligned<group>(dx, dy, y); }
  template <int N = 1>
  DUPLEX_PORTABLE void operator()(std::uint32_t i) const {
    const auto chained = [](float gradient, float value) {
      return gradient * value * (1.0F - value);
    };
    store(dx + i, map(chained, load<N>(dy + i), load<N>(y + i)));
  }
};

/// Adds its channel's bias to every element of y, in place, then applies ReLU where `rectified`.
template <class Value>
struct AddBias {
  View view;
  Value* y;
  const float* bias;
  bool rectified;

  static constexpr int group = group_of<Value>;
  bool grouped() const { return in_groups<group>(view) && aligned<group>(y, bias); }
  template <int N = 1>
  DUPLEX_PORTABLE void operator()(std::uint32_t i) const {
    const auto biased = [this](float value, float by) {
      return rectified ? relu(value + by) : value + by;
    };
    store(y + i, map(biased, load<N>(y + i), of_channels<N>(view, bias, view.channel(i))));
  }
};

/// y = a + b, then ReLU where `rectified`. y has the layout of a.
template <class Value, class Other>
struct Sum {
  View a_view, b_view;
  Value* y;
  const Value* a;
  const Other* b;
  bool same, rectified;  ///< same: a and b have the same layout.

  static constexpr int group = group_of<Value, Other>;
  bool grouped() const { return same && aligned<group>(y, a) && aligned<group>(b); }
  template <int N = 1>
  DUPLEX_PORTABLE void operator()(std::uint32_t i) const {
    const auto added = [this](float one, float other) {
      return rectified ? relu(one + other) : one + other;
    };
    const std::uint32_t at = N > 1 || same ? i : b_view.offset(a_view.coord(i));
    store(y + i, map(added, load<N>(a + i), load<N>(b + at)));
  }
};

constexpr int summed_at_once = 8;

/// The inputs of a sum whose addresses are among a kernel's arguments: up to summed_at_once.
template <class Value>
struct GivenInputs {
  static constexpr bool many = false;
  const Value* at[summed_at_once];

  template <int N>
  bool all_aligned(int count) const {
    bool all_are = true;
    for (int k = 0; k < count; ++k) all_are = all_are && aligned<N>(at[k]);
    return all_are;
  }
};

/// The inputs of a sum whose addresses lie in the memory that the kernel reads, so that they may be
/// as many as there are. `in_groups`: all of them are aligned for groups.
template <class Value>
struct ListedInputs {
  static constexpr bool many = true;
  const Value* const* at;
  bool in_groups;

  template <int N>
  bool all_aligned(int) const {
    return in_groups;
  }
};

/// Sums inputs in their order, and masks the sum by [y > 0] where `y` is not null. The sum is
/// rounded once, when it is stored, so that `out` may be any of the inputs.
template <class Value, class Inputs = GivenInputs<Value>>
struct MaskedSum {
  Value* out;
  const Value* y;
  Inputs inputs;
  int count;

  static constexpr int group = group_of<Value>;
  bool grouped() const {
    return aligned<group>(out, y) && inputs.template all_aligned<group>(count);
  }
  template <int N = 1>
  DUPLEX_PORTABLE void operator()(std::uint32_t i) const {
    store(out + i, values<N>(i));
  }
  /// Returns what is stored, before it is rounded.
  template <int N>
  DUPLEX_PORTABLE Floats<N> values(std::uint32_t i) const {
    AlignedVector<Value, N> mask{};
    if (y != nullptr) mask = read<N>(y + i);
    Floats<N> sum = plus_some(broadcast<N>(0.0F), 0, i);
    if constexpr (Inputs::many)
      for (int first = summed_at_once; first < count; first += summed_at_once)
        sum = plus_some(sum, first, i);
    const bool masked = y != nullptr;
    const auto kept = [masked](float value, float by) {
      return !masked || by > 0.0F ? value : 0.0F;
    };
    return map(kept, sum, floats(mask));
  }

 private:
  /// Returns the sum and the inputs from number `first` on, a few. All of these are being read
  /// before the first value is waited for.
  template <int N>
  DUPLEX_PORTABLE Floats<N> plus_some(Floats<N> sum, int first, std::uint32_t i) const {
    AlignedVector<Value, N> one[summed_at_once]{};
    for (int k = 0; k < summed_at_once; ++k)
      if (first + k < count) one[k] = read<N>(inputs.at[first + k] + i);
    for (int k = 0; k < summed_at_once; ++k)
      if (first + k < count) sum = map([](float a, float b) { return a + b; }, sum, floats(one[k]));
    return sum;
  }
};

/// A slice is some neighbouring channels of a tensor.
struct Slice {
  View whole, part;
  std::uint32_t first;  ///< The whole's channel that is the part's first.

  DUPLEX_PORTABLE bool alike() const { return whole.order == part.order; }
  DUPLEX_PORTABLE std::uint32_t begin() const {
    return whole.order == Order::nhwc ? first : first * whole.map();
  }
  /// Returns the offset in the whole of the element at offset i of the part.
  DUPLEX_PORTABLE std::uint32_t offset(std::uint32_t i) const {
    if (alike()) {
      const std::uint32_t run = part.run(), number = i / run;
      return number * whole.run() + begin() + (i - number * run);
    }
    Coord at = part.coord(i);
    at.c += first;
    return whole.offset(at);
  }
  /// Returns whether N elements of the part, from any multiple of N on, are neighbours in the
  /// whole, too.
  template <int N>
  bool in_groups() const {
    return alike() && part.run() % N == 0 && whole.run() % N == 0 && begin() % N == 0;
  }
};

/// Copies x into its slice of y, for every element of x.
template <class To, class From>
struct IntoSlice {
  Slice slice;
  To* y;
  const From* x;

  static constexpr int group = group_of<To, From>;
  bool grouped() const { return slice.in_groups<group>() && aligned<group>(y, x); }
  template <int N = 1>
  DUPLEX_PORTABLE void operator()(std::uint32_t i) const {
    store(y + slice.offset(i), load<N>(x + i));
  }
};

/// Copies the slice of dy into dx, for every element of dx, and masks it by [y > 0] where `y` is
/// not null.
template <class To, class From>
struct FromSlice {
  Slice slice;
  To* dx;
  const From *dy, *y;

  static constexpr int group = group_of<To, From>;
  bool grouped() const { return slice.in_groups<group>() && aligned<group>(dx, dy, y); }
  template <int N = 1>
  DUPLEX_PORTABLE void operator()(std::uint32_t i) const {
    const std::uint32_t at = slice.offset(i);
    const auto masked = [](float gradient, float by) { return by > 0.0F ? gradient : 0.0F; };
    store(dx + i,
          map(masked, load<N>(dy + at), y == nullptr ? broadcast<N>(1.0F) : load<N>(y + at)));
  }
};

/// The draws of a dropout.
struct Draws {
  std::uint64_t seed, stream, first;  ///< first: the index of the batch's first draw.
  std::uint64_t gap;                  ///< Draws between two samples that belong to neither.
};

/// Puts them into the GPU's memory.
struct StoreDraws {
  Draws* to;
  Draws draws;
  DUPLEX_PORTABLE void operator()(std::uint32_t) const { *to = draws; }
};

/// Dropout draws as DropoutDraw in core/operations.h says, in forward and again in backward, so
/// that no mask is kept.
template <class Value>
struct Drop {
  View view;
  Value* to;
  const Value* from;
  float rate, kept;  ///< kept: 1 / (1 - rate).
  Draws own;
  const Draws* stored = nullptr;  ///< In the GPU's memory; they count instead of `own`.
  DUPLEX_PORTABLE void operator()(std::uint32_t i) const {
    const Draws draws = stored == nullptr ? own : *stored;
    const std::uint32_t logical =
        view.order == Order::nchw ? i : View{view.n, view.c, view.h, view.w}.offset(view.coord(i));
    std::uint64_t number = draws.first + logical;
    if (draws.gap != 0) number += draws.gap * (logical / (view.c * view.map()));
    to[i] = RandomStream(draws.seed, draws.stream).uniform(number) < rate ? 0.0F
                                                                          : float{from[i]} * kept;
  }
};

}  // namespace duplex::cudnn
