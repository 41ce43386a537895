// The bodies of the kernels of pooling and of local response normalisation: what they do with one
// element, or with N channels of a pixel (elements.h). Every output gathers its inputs, so that no
// sum depends on the order in which threads run.
#pragma once
#include <cmath>
#include <cstdint>

#include "core/cudnn/kernels/vector.h"

namespace duplex::cudnn {

/// A pooling window, which slides over a map. Padding may differ on the four sides; only its top
/// and left matter here.
struct PoolWindow {
  std::int32_t height, width, stride_y, stride_x, top, left;
};

/// Rows or columns [begin, end).
struct Range {
  std::int32_t begin, end;
  DUPLEX_PORTABLE std::int32_t size() const { return end - begin; }
};

DUPLEX_PORTABLE inline std::int32_t min(std::int32_t a, std::int32_t b) {
  return a < b ? a : b;
}
DUPLEX_PORTABLE inline std::int32_t max(std::int32_t a, std::int32_t b) {
  return a > b ? a : b;
}

/// Returns the rows or columns of the map that the window of output `at` covers.
DUPLEX_PORTABLE inline Range input_range(std::uint32_t at, std::int32_t stride,
                                         std::int32_t padding, std::int32_t window,
                                         std::uint32_t extent) {
  const std::int32_t begin = static_cast<std::int32_t>(at) * stride - padding;
  return {max(begin, 0), min(begin + window, static_cast<std::int32_t>(extent))};
}

/// Divides by a stride. Most strides are 1 or 2, which need no division.
DUPLEX_PORTABLE inline std::int32_t divided(std::int32_t value, std::int32_t stride) {
  const auto whole = static_cast<std::uint32_t>(value), by = static_cast<std::uint32_t>(stride);
  return static_cast<std::int32_t>(by == 1 ? whole : by == 2 ? whole >> 1U : whole / by);
}

/// Returns the outputs whose windows cover row or column `at` of the map.
DUPLEX_PORTABLE inline Range output_range(std::uint32_t at, std::int32_t stride,
                                          std::int32_t padding, std::int32_t window,
                                          std::uint32_t outputs) {
  const std::int32_t shifted = static_cast<std::int32_t>(at) + padding;
  const std::int32_t first = shifted < window ? 0 : divided(shifted - window, stride) + 1;
  return {first, min(divided(shifted, stride) + 1, static_cast<std::int32_t>(outputs))};
}

/// The map of one channel of a sample.
struct Plane {
  std::uint32_t begin, down, right;  ///< The first offset; the steps to the next row and column.
  DUPLEX_PORTABLE std::uint32_t offset(std::uint32_t row, std::uint32_t column) const {
    return begin + row * down + column * right;
  }
};

DUPLEX_PORTABLE inline Plane plane_of(const View& view, const Coord& p) {
  const std::uint32_t right = view.order == Order::nchw ? 1 : view.c;
  return {view.offset({p.n, p.c, 0, 0}), view.w * right, right};
}

/// Returns whether N channels of a pixel are contiguous in both, wherever a group begins.
template <int N>
bool channels_in_groups(const View& x, const View& y) {
  return x.channels_last() && y.channels_last() && x.c % N == 0;
}

/// Calls visit(row, column) for every element of the map that the window of output `p` covers, in
/// row-major order.
template <class Visit>
DUPLEX_PORTABLE void for_each_input(const PoolWindow& window_of_pool, const View& map,
                                    const Coord& p, const Visit& visit) {
  const Range rows =
      input_range(p.y, window_of_pool.stride_y, window_of_pool.top, window_of_pool.height, map.h);
  const Range columns =
      input_range(p.x, window_of_pool.stride_x, window_of_pool.left, window_of_pool.width, map.w);
  for (std::int32_t row = rows.begin; row < rows.end; ++row)
    for (std::int32_t column = columns.begin; column < columns.end; ++column)
      visit(static_cast<std::uint32_t>(row), static_cast<std::uint32_t>(column));
}

/// Calls visit(row, column) for every output whose window covers `p` of the map.
template <class Visit>
DUPLEX_PORTABLE void for_each_output(const PoolWindow& window_of_pool, const View& outputs,
                                     const Coord& p, const Visit& visit) {
  const Range rows = output_range(p.y, window_of_pool.stride_y, window_of_pool.top,
                                  window_of_pool.height, outputs.h);
  const Range columns = output_range(p.x, window_of_pool.stride_x, window_of_pool.left,
                                     window_of_pool.width, outputs.w);
  for (std::int32_t row = rows.begin; row < rows.end; ++row)
    for (std::int32_t column = columns.begin; column < columns.end; ++column)
      visit(static_cast<std::uint32_t>(row), static_cast<std::uint32_t>(column));
}

/// Returns the row-major position that (y, x) of the map has in the window of output (row, column).
DUPLEX_PORTABLE inline std::uint32_t in_window(const PoolWindow& window_of_pool, std::uint32_t row,
                                               std::uint32_t column, std::uint32_t y,
                                               std::uint32_t x) {
  const auto down = static_cast<std::int32_t>(y) + window_of_pool.top -
                    static_cast<std::int32_t>(row) * window_of_pool.stride_y;
  const auto right = static_cast<std::int32_t>(x) + window_of_pool.left -
                     static_cast<std::int32_t>(column) * window_of_pool.stride_x;
  return static_cast<std::uint32_t>(down * window_of_pool.width + right);
}

/// Returns how many elements of the map the window of output (row, column) covers.
DUPLEX_PORTABLE inline float window_elements(const PoolWindow& window_of_pool, const View& map,
                                             std::uint32_t row, std::uint32_t column) {
  const std::int32_t height =
      input_range(row, window_of_pool.stride_y, window_of_pool.top, window_of_pool.height, map.h)
          .size();
  const std::int32_t width =
      input_range(column, window_of_pool.stride_x, window_of_pool.left, window_of_pool.width, map.w)
          .size();
  return static_cast<float>(height * width);
}

/// Computes every element of y. `argmax` is the row-major position of the maximum in its window;
/// among equals, that of the first.
template <class Value, class Argmax>
struct MaxPool {
  View x_view, y_view;
  PoolWindow window_of_pool;
  Value* y;
  Argmax* argmax;
  const Value* x;

  static constexpr int group = group_of<Value>;
  bool grouped() const {
    return channels_in_groups<group>(x_view, y_view) && aligned<group>(y, x) &&
           aligned<group>(argmax);
  }
  template <int N = 1>
  DUPLEX_PORTABLE void operator()(std::uint32_t i) const {
    const Coord p = y_view.coord(i);
    const Plane plane = plane_of(x_view, p);
    Floats<N> best = broadcast<N>(0.0F);
    AlignedVector<Argmax, N> first{};
    bool any = false;
    for_each_input(window_of_pool, x_view, p, [&](std::uint32_t row, std::uint32_t column) {
      const Floats<N> value = load<N>(x + plane.offset(row, column));
      const auto here = static_cast<Argmax>(in_window(window_of_pool, p.y, p.x, row, column));
      for (int k = 0; k < N; ++k) {
        const bool is_nan = value[k] != value[k];  // NOLINT(misc-redundant-expression)
        const bool wins = !any || value[k] > best[k] || is_nan;
        best[k] = wins ? value[k] : best[k];
        first.of[k] = wins ? here : first.of[k];
      }
      any = true;
    });
    store(y + i, best);
    write(argmax + i, first);
  }
};

/// Computes every element of dx: the sum of dy over the outputs whose maximum it was.
template <class Value, class Argmax>
struct MaxPoolBackward {
  View x_view, y_view;
  PoolWindow window_of_pool;
  Value* dx;
  const Argmax* argmax;
  const Value* dy;

  static constexpr int group = group_of<Value>;
  bool grouped() const {
    return channels_in_groups<group>(x_view, y_view) && aligned<group>(dx, dy) &&
           aligned<group>(argmax);
  }
  template <int N = 1>
  DUPLEX_PORTABLE void operator()(std::uint32_t i) const {
    const Coord p = x_view.coord(i);
    const Plane plane = plane_of(y_view, p);
    Floats<N> sum = broadcast<N>(0.0F);
    for_each_output(window_of_pool, y_view, p, [&](std::uint32_t row, std::uint32_t column) {
      const std::uint32_t at = plane.offset(row, column);
      const auto first = read<N>(argmax + at);
      const Floats<N> value = load<N>(dy + at);
      const std::uint32_t here = in_window(window_of_pool, row, column, p.y, p.x);
      for (int k = 0; k < N; ++k) sum[k] += std::uint32_t{first.of[k]} == here ? value[k] : 0.0F;
    });
    store(dx + i, sum);
  }
};

/// Computes every element of y: the mean of the elements of the map that its window covers.
template <class Value>
struct AveragePool {
  View x_view, y_view;
  PoolWindow window_of_pool;
  Value* y;
  const Value* x;

  static constexpr int group = group_of<Value>;
  bool grouped() const { return channels_in_groups<group>(x_view, y_view) && aligned<group>(y, x); }
  template <int N = 1>
  DUPLEX_PORTABLE void operator()(std::uint32_t i) const {
    const Coord p = y_view.coord(i);
    const Plane plane = plane_of(x_view, p);
    Floats<N> sum = broadcast<N>(0.0F);
    for_each_input(window_of_pool, x_view, p, [&](std::uint32_t row, std::uint32_t column) {
      const Floats<N> value = load<N>(x + plane.offset(row, column));
      for (int k = 0; k < N; ++k) sum[k] += value[k];
    });
    const float count = window_elements(window_of_pool, x_view, p.y, p.x);
    store(y + i, map([count](float total) { return total / count; }, sum));
  }
};

/// Computes every element of dx from the outputs whose windows cover it.
template <class Value>
struct AveragePoolBackward {
  View x_view, y_view;
  PoolWindow window_of_pool;
  Value* dx;
  const Value* dy;

  static constexpr int group = group_of<Value>;
  bool grouped() const {
    return channels_in_groups<group>(x_view, y_view) && aligned<group>(dx, dy);
  }
  template <int N = 1>
  DUPLEX_PORTABLE void operator()(std::uint32_t i) const {
    const Coord p = x_view.coord(i);
    const Plane plane = plane_of(y_view, p);
    Floats<N> sum = broadcast<N>(0.0F);
    for_each_output(window_of_pool, y_view, p, [&](std::uint32_t row, std::uint32_t column) {
      const Floats<N> value = load<N>(dy + plane.offset(row, column));
      const float count = window_elements(window_of_pool, x_view, row, column);
      for (int k = 0; k < N; ++k) sum[k] += value[k] / count;
    });
    store(dx + i, sum);
  }
};

/// Returns scale^exponent of a scale above zero, at a fraction of the cost of powf, which heeds
/// every sign.
DUPLEX_PORTABLE inline float fast_pow(float scale, float exponent) {
  return exp2f(exponent * log2f(scale));
}

/// Returns the channels that LRN sums, each once, for a pixel's `count` channels from c on.
DUPLEX_PORTABLE inline Range summed_channels(std::uint32_t c, std::int32_t reach, int count,
                                             std::uint32_t channels) {
  return input_range(c, 1, reach, 2 * reach + count, channels);
}

/// Returns the distance from an element to that of the next channel.
DUPLEX_PORTABLE inline std::uint32_t channel_step(const View& view) {
  return view.order == Order::nchw ? view.map() : 1;
}

/// Adds `term`, which is of channel j, to the sums of those of N channels from c on whose windows
/// cover j.
template <int N>
DUPLEX_PORTABLE void add_where_covered(Floats<N>& sums, float term, std::int32_t j, std::uint32_t c,
                                       std::int32_t reach) {
  for (int k = 0; k < N; ++k) {
    const std::int32_t distance = j - static_cast<std::int32_t>(c) - k;
    const bool covers = N == 1 || (distance >= -reach && distance <= reach);
    sums[k] += covers ? term : 0.0F;
  }
}

/// LRN (2.8): scale = k + alpha / size * sum of squares, y = x * scale^-beta, for every element.
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
    Floats<N> sum = broadcast<N>(k);
    for (std::int32_t j = channels.begin; j < channels.end; ++j) {
      const float value = x[begin + static_cast<std::uint32_t>(j) * step];
      add_where_covered(sum, weight * value * value, j, c, reach);
    }
    store(scale + i, sum);
    const auto divided_by = [this](float value, float by) { return value * fast_pow(by, -beta); };
    store(y + i, map(divided_by, load<N>(x + i), sum));
  }
};

/// The gradient of LRN:
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
    Floats<N> sum = broadcast<N>(0.0F);
    for (std::int32_t j = channels.begin; j < channels.end; ++j) {
      const std::uint32_t at = begin + static_cast<std::uint32_t>(j) * step;
      const float term = float{dy[at]} * float{x[at]} * fast_pow(scale[at], -beta - 1.0F);
      add_where_covered(sum, term, j, c, reach);
    }
    const Floats<N> given = load<N>(dy + i), value = load<N>(x + i), by = load<N>(scale + i);
    Floats<N> result;
    for (int k = 0; k < N; ++k)
      result[k] = given[k] * fast_pow(by[k], -beta) - weight * value[k] * sum[k];
    store(dx + i, result);
  }
};

}  // namespace duplex::cudnn
