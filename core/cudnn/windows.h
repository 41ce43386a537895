// What the kernels of pooling and of local response normalisation do with one element, or with N
// channels of a pixel (elements.h). Every one gathers what belongs to it, so that nothing is summed
// in an order that changes.
#pragma once
#include <cmath>
#include <cstdint>

#include "core/cudnn/vector.h"

namespace duplex::cudnn {

/// A window that slides over a map. Padding may differ on the four sides; only where it begins
/// matters here.
struct Slide {
  std::int32_t height, width, stride_y, stride_x, top, left;
};

/// Rows or columns [begin, end).
struct Range {
  std::int32_t begin, end;
  DUPLEX_PORTABLE std::int32_t size() const { return end - begin; }
};

DUPLEX_PORTABLE inline std::int32_t least(std::int32_t a, std::int32_t b) {
  return a < b ? a : b;
}
DUPLEX_PORTABLE inline std::int32_t greatest(std::int32_t a, std::int32_t b) {
  return a > b ? a : b;
}

/// Of the map, what the window of output `at` covers.
DUPLEX_PORTABLE inline Range covered(std::uint32_t at, std::int32_t stride, std::int32_t padding,
                                     std::int32_t window, std::uint32_t extent) {
  const std::int32_t begin = static_cast<std::int32_t>(at) * stride - padding;
  return {greatest(begin, 0), least(begin + window, static_cast<std::int32_t>(extent))};
}

/// Most strides are 1 or 2, which need no division.
DUPLEX_PORTABLE inline std::int32_t divided(std::int32_t value, std::int32_t stride) {
  const auto whole = static_cast<std::uint32_t>(value), by = static_cast<std::uint32_t>(stride);
  return static_cast<std::int32_t>(by == 1 ? whole : by == 2 ? whole >> 1U : whole / by);
}

/// The outputs whose windows cover `at` of the map.
DUPLEX_PORTABLE inline Range covering(std::uint32_t at, std::int32_t stride, std::int32_t padding,
                                      std::int32_t window, std::uint32_t outputs) {
  const std::int32_t shifted = static_cast<std::int32_t>(at) + padding;
  const std::int32_t first = shifted < window ? 0 : divided(shifted - window, stride) + 1;
  return {first, least(divided(shifted, stride) + 1, static_cast<std::int32_t>(outputs))};
}

/// The map of a sample's channel.
struct Plane {
  std::uint32_t begin, down, right;  ///< Offsets: of the first, and to the next row and column.
  DUPLEX_PORTABLE std::uint32_t offset(std::uint32_t row, std::uint32_t column) const {
    return begin + row * down + column * right;
  }
};

DUPLEX_PORTABLE inline Plane plane_of(const View& view, const Place& p) {
  const std::uint32_t right = view.order == Order::nchw ? 1 : view.c;
  return {view.offset({p.n, p.c, 0, 0}), view.w * right, right};
}

/// Whether N channels of a pixel lie together in both, wherever they begin.
template <int N>
bool channels_in_groups(const View& x, const View& y) {
  return x.channels_last() && y.channels_last() && x.c % N == 0;
}

/// visit(row, column) of the map for all that the window of output `p` covers, row-major.
template <class Visit>
DUPLEX_PORTABLE void for_each_covered(const Slide& slide, const View& map, const Place& p,
                                      const Visit& visit) {
  const Range rows = covered(p.y, slide.stride_y, slide.top, slide.height, map.h);
  const Range columns = covered(p.x, slide.stride_x, slide.left, slide.width, map.w);
  for (std::int32_t row = rows.begin; row < rows.end; ++row)
    for (std::int32_t column = columns.begin; column < columns.end; ++column)
      visit(static_cast<std::uint32_t>(row), static_cast<std::uint32_t>(column));
}

/// visit(row, column) of the outputs for all whose windows cover `p` of the map.
template <class Visit>
DUPLEX_PORTABLE void for_each_covering(const Slide& slide, const View& outputs, const Place& p,
                                       const Visit& visit) {
  const Range rows = covering(p.y, slide.stride_y, slide.top, slide.height, outputs.h);
  const Range columns = covering(p.x, slide.stride_x, slide.left, slide.width, outputs.w);
  for (std::int32_t row = rows.begin; row < rows.end; ++row)
    for (std::int32_t column = columns.begin; column < columns.end; ++column)
      visit(static_cast<std::uint32_t>(row), static_cast<std::uint32_t>(column));
}

/// The place in the window of output (row, column), row-major, of (y, x) of the map.
DUPLEX_PORTABLE inline std::uint32_t in_window(const Slide& slide, std::uint32_t row,
                                               std::uint32_t column, std::uint32_t y,
                                               std::uint32_t x) {
  const auto down =
      static_cast<std::int32_t>(y) + slide.top - static_cast<std::int32_t>(row) * slide.stride_y;
  const auto right = static_cast<std::int32_t>(x) + slide.left -
                     static_cast<std::int32_t>(column) * slide.stride_x;
  return static_cast<std::uint32_t>(down * slide.width + right);
}

/// Elements of the map that the window of output (row, column) covers.
DUPLEX_PORTABLE inline float covered_elements(const Slide& slide, const View& map,
                                              std::uint32_t row, std::uint32_t column) {
  const std::int32_t height = covered(row, slide.stride_y, slide.top, slide.height, map.h).size();
  const std::int32_t width = covered(column, slide.stride_x, slide.left, slide.width, map.w).size();
  return static_cast<float>(height * width);
}

/// For every element of y. `winner`: its place in the window, row-major; among equals the first.
template <class Value, class Winner>
struct MaxPool {
  View x_view, y_view;
  Slide slide;
  Value* y;
  Winner* winner;
  const Value* x;

  static constexpr int group = group_of<Value>;
  bool grouped() const {
    return channels_in_groups<group>(x_view, y_view) && aligned<group>(y, x) &&
           aligned<group>(winner);
  }
  template <int N = 1>
  DUPLEX_PORTABLE void operator()(std::uint32_t i) const {
    const Place p = y_view.place(i);
    const Plane plane = plane_of(x_view, p);
    Floats<N> best = all<N>(0.0F);
    Group<Winner, N> first{};
    bool any = false;
    for_each_covered(slide, x_view, p, [&](std::uint32_t row, std::uint32_t column) {
      const Floats<N> value = load<N>(x + plane.offset(row, column));
      const auto here = static_cast<Winner>(in_window(slide, p.y, p.x, row, column));
      for (int k = 0; k < N; ++k) {
        const bool wins = !any || value[k] > best[k] || value[k] != value[k];
        best[k] = wins ? value[k] : best[k];
        first.of[k] = wins ? here : first.of[k];
      }
      any = true;
    });
    store(y + i, best);
    write(winner + i, first);
  }
};

/// For every element of dx.
template <class Value, class Winner>
struct MaxPoolBackward {
  View x_view, y_view;
  Slide slide;
  Value* dx;
  const Winner* winner;
  const Value* dy;

  static constexpr int group = group_of<Value>;
  bool grouped() const {
    return channels_in_groups<group>(x_view, y_view) && aligned<group>(dx, dy) &&
           aligned<group>(winner);
  }
  template <int N = 1>
  DUPLEX_PORTABLE void operator()(std::uint32_t i) const {
    const Place p = x_view.place(i);
    const Plane plane = plane_of(y_view, p);
    Floats<N> sum = all<N>(0.0F);
    for_each_covering(slide, y_view, p, [&](std::uint32_t row, std::uint32_t column) {
      const std::uint32_t at = plane.offset(row, column);
      const auto first = read<N>(winner + at);
      const Floats<N> value = load<N>(dy + at);
      const std::uint32_t here = in_window(slide, row, column, p.y, p.x);
      for (int k = 0; k < N; ++k) sum[k] += std::uint32_t{first.of[k]} == here ? value[k] : 0.0F;
    });
    store(dx + i, sum);
  }
};

/// For every element of y: the mean of what its window has of the map.
template <class Value>
struct AveragePool {
  View x_view, y_view;
  Slide slide;
  Value* y;
  const Value* x;

  static constexpr int group = group_of<Value>;
  bool grouped() const { return channels_in_groups<group>(x_view, y_view) && aligned<group>(y, x); }
  template <int N = 1>
  DUPLEX_PORTABLE void operator()(std::uint32_t i) const {
    const Place p = y_view.place(i);
    const Plane plane = plane_of(x_view, p);
    Floats<N> sum = all<N>(0.0F);
    for_each_covered(slide, x_view, p, [&](std::uint32_t row, std::uint32_t column) {
      const Floats<N> value = load<N>(x + plane.offset(row, column));
      for (int k = 0; k < N; ++k) sum[k] += value[k];
    });
    const float count = covered_elements(slide, x_view, p.y, p.x);
    store(y + i, each([count](float total) { return total / count; }, sum));
  }
};

/// For every element of dx.
template <class Value>
struct AveragePoolBackward {
  View x_view, y_view;
  Slide slide;
  Value* dx;
  const Value* dy;

  static constexpr int group = group_of<Value>;
  bool grouped() const {
    return channels_in_groups<group>(x_view, y_view) && aligned<group>(dx, dy);
  }
  template <int N = 1>
  DUPLEX_PORTABLE void operator()(std::uint32_t i) const {
    const Place p = x_view.place(i);
    const Plane plane = plane_of(y_view, p);
    Floats<N> sum = all<N>(0.0F);
    for_each_covering(slide, y_view, p, [&](std::uint32_t row, std::uint32_t column) {
      const Floats<N> value = load<N>(dy + plane.offset(row, column));
      const float count = covered_elements(slide, x_view, row, column);
      for (int k = 0; k < N; ++k) sum[k] += value[k] / count;
    });
    store(dx + i, sum);
  }
};

/// scale^exponent of a scale above zero: a fraction of what powf costs, which heeds every sign.
DUPLEX_PORTABLE inline float raised(float scale, float exponent) {
  return exp2f(exponent * log2f(scale));
}

/// The channels that LRN sums for a pixel's `count` channels from c on: each once.
DUPLEX_PORTABLE inline Range summed_channels(std::uint32_t c, std::int32_t reach, int count,
                                             std::uint32_t channels) {
  return covered(c, 1, reach, 2 * reach + count, channels);
}

/// Between an element and that of the next channel.
DUPLEX_PORTABLE inline std::uint32_t channel_step(const View& view) {
  return view.order == Order::nchw ? view.map() : 1;
}

/// Adds `term`, of channel j, to those of N channels from c on whose windows cover it.
template <int N>
DUPLEX_PORTABLE void add_where_covered(Floats<N>& sums, float term, std::int32_t j, std::uint32_t c,
                                       std::int32_t reach) {
  for (int k = 0; k < N; ++k) {
    const std::int32_t distance = j - static_cast<std::int32_t>(c) - k;
    const bool covers = N == 1 || (distance >= -reach && distance <= reach);
    sums[k] += covers ? term : 0.0F;
  }
}

/// (2.8), for every element: scale = k + alpha / size * sum of squares, y = x * scale^-beta.
template <class Value>
struct LrnForward {
  View view;
  std::int32_t reach;     ///< size / 2.
  float weight, beta, k;  ///< weight: alpha / size.
  Value* y;
  float* scale;
  const Value* x;

  static constexpr int group = group_of<Value>;
  bool grouped() const {
    return channels_in_groups<group>(view, view) && aligned<group>(y, x) && aligned<group>(scale);
  }
  template <int N = 1>
  DUPLEX_PORTABLE void operator()(std::uint32_t i) const {
    const std::uint32_t c = view.channel(i), step = channel_step(view), begin = i - c * step;
    const Range channels = summed_channels(c, reach, N, view.c);
    Floats<N> sum = all<N>(k);
    for (std::int32_t j = channels.begin; j < channels.end; ++j) {
      const float value = x[begin + static_cast<std::uint32_t>(j) * step];
      add_where_covered(sum, weight * value * value, j, c, reach);
    }
    store(scale + i, sum);
    const auto divided_by = [this](float value, float by) { return value * raised(by, -beta); };
    store(y + i, each(divided_by, load<N>(x + i), sum));
  }
};

/// dx[c] = dy[c] scale[c]^-beta - 2 alpha beta / size x[c] sum of dy[j] x[j] scale[j]^(-beta - 1).
template <class Value>
struct LrnBackward {
  View view;
  std::int32_t reach;
  float weight, beta;  ///< weight: 2 alpha beta / size.
  Value* dx;
  const Value *dy, *x;
  const float* scale;

  static constexpr int group = group_of<Value>;
  bool grouped() const {
    return channels_in_groups<group>(view, view) && aligned<group>(dx, dy, x) &&
           aligned<group>(scale);
  }
  template <int N = 1>
  DUPLEX_PORTABLE void operator()(std::uint32_t i) const {
    const std::uint32_t c = view.channel(i), step = channel_step(view), begin = i - c * step;
    const Range channels = summed_channels(c, reach, N, view.c);
    Floats<N> sum = all<N>(0.0F);
    for (std::int32_t j = channels.begin; j < channels.end; ++j) {
      const std::uint32_t at = begin + static_cast<std::uint32_t>(j) * step;
      const float term = float{dy[at]} * float{x[at]} * raised(scale[at], -beta - 1.0F);
      add_where_covered(sum, term, j, c, reach);
    }
    const Floats<N> given = load<N>(dy + i), value = load<N>(x + i), by = load<N>(scale + i);
    Floats<N> result;
    for (int k = 0; k < N; ++k)
      result[k] = given[k] * raised(by[k], -beta) - weight * value[k] * sum[k];
    store(dx + i, result);
  }
};

}  // namespace duplex::cudnn
