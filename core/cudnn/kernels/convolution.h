// The bodies of the kernels that check an engine of cuDNN: they compute single elements of what a
// graph computes, exactly as (2.7) and its gradients are written, and collect those that the engine
// computed. Sums are of doubles.
#pragma once
#include <cstdint>

#include "core/cudnn/kernels/windows.h"

namespace duplex::cudnn {

/// A convolution by (2.7). Channels of x fall into x.c / weights.c groups.
struct Convolved {
  View x, weights, y;
  PoolWindow window;

  DUPLEX_PORTABLE std::uint32_t filters_of_group() const { return y.c / (x.c / weights.c); }
  /// Returns whether output (oy, ox) reads a pixel of x through (r, s) of the window; puts it
  /// there.
  DUPLEX_PORTABLE bool reads(std::uint32_t oy, std::uint32_t ox, std::uint32_t r, std::uint32_t s,
                             Coord& pixel) const {
    const std::int32_t row =
        static_cast<std::int32_t>(oy) * window.stride_y - window.top + static_cast<std::int32_t>(r);
    const std::int32_t column = static_cast<std::int32_t>(ox) * window.stride_x - window.left +
                                static_cast<std::int32_t>(s);
    pixel.y = static_cast<std::uint32_t>(row);
    pixel.x = static_cast<std::uint32_t>(column);
    return row >= 0 && column >= 0 && pixel.y < x.h && pixel.x < x.w;
  }
};

/// Returns part i % parts of a sum: its terms i % parts, i % parts + parts, ... below `count`.
template <class Term>
DUPLEX_PORTABLE double sum_of_part(std::uint32_t i, std::uint32_t parts, std::uint32_t count,
                                   const Term& term) {
  double sum = 0.0;
  for (std::uint32_t k = i % parts; k < count; k += parts) sum += term(k);
  return sum;
}

template <class Value>
DUPLEX_PORTABLE double product(Value a, Value b) {
  return static_cast<double>(static_cast<float>(a)) * static_cast<double>(static_cast<float>(b));
}

/// to[i * parts + j] = part j of y at[i].
template <class Value>
struct ConvolutionAt {
  Convolved of;
  const Value *x, *weights;
  const Coord* at;
  std::uint32_t parts;
  double* to;

  DUPLEX_PORTABLE void operator()(std::uint32_t i) const {
    const Coord out = at[i / parts];
    const std::uint32_t first = out.c / of.filters_of_group() * of.weights.c;
    to[i] = sum_of_part(i, parts, of.weights.c * of.weights.map(), [&](std::uint32_t k) {
      const std::uint32_t s = k % of.weights.w, r = k / of.weights.w % of.weights.h;
      const std::uint32_t c = k / of.weights.map();
      Coord pixel{out.n, first + c, 0, 0};
      if (!of.reads(out.y, out.x, r, s, pixel)) return 0.0;
      return product(x[of.x.offset(pixel)], weights[of.weights.offset({out.c, c, r, s})]);
    });
  }
};

/// to[i * parts + j] = part j of dx at[i]. Every output of the group that reads the pixel adds to
/// it.
template <class Value>
struct DataGradientAt {
  Convolved of;
  const Value *weights, *dy;
  const Coord* at;
  std::uint32_t parts;
  double* to;

  DUPLEX_PORTABLE void operator()(std::uint32_t i) const {
    const Coord pixel = at[i / parts];
    const std::uint32_t group = pixel.c / of.weights.c, filters = of.filters_of_group();
    to[i] = sum_of_part(i, parts, filters * of.weights.map(), [&](std::uint32_t k) {
      const std::uint32_t s = k % of.weights.w, r = k / of.weights.w % of.weights.h;
      const std::uint32_t filter = group * filters + k / of.weights.map();
      const std::int32_t down =
          static_cast<std::int32_t>(pixel.y) + of.window.top - static_cast<std::int32_t>(r);
      const std::int32_t right =
          static_cast<std::int32_t>(pixel.x) + of.window.left - static_cast<std::int32_t>(s);
      if (down < 0 || right < 0 || down % of.window.stride_y != 0 ||
          right % of.window.stride_x != 0)
        return 0.0;
      const auto oy = static_cast<std::uint32_t>(down / of.window.stride_y);
      const auto ox = static_cast<std::uint32_t>(right / of.window.stride_x);
      if (oy >= of.y.h || ox >= of.y.w) return 0.0;
      return product(weights[of.weights.offset({filter, pixel.c % of.weights.c, r, s})],
                     dy[of.y.offset({pixel.n, filter, oy, ox})]);
    });
  }
};

/// to[i * parts + j] = part j of dweights at[i]. All outputs of the filter add to it.
template <class Value>
struct WeightsGradientAt {
  Convolved of;
  const Value *x, *dy;
  const Coord* at;
  std::uint32_t parts;
  double* to;

  DUPLEX_PORTABLE void operator()(std::uint32_t i) const {
    const Coord weight = at[i / parts];
    const std::uint32_t channel = weight.n / of.filters_of_group() * of.weights.c + weight.c;
    to[i] = sum_of_part(i, parts, of.y.n * of.y.map(), [&](std::uint32_t k) {
      const std::uint32_t ox = k % of.y.w, oy = k / of.y.w % of.y.h, n = k / of.y.map();
      Coord pixel{n, channel, 0, 0};
      if (!of.reads(oy, ox, weight.y, weight.x, pixel)) return 0.0;
      return product(x[of.x.offset(pixel)], dy[of.y.offset({n, weight.n, oy, ox})]);
    });
  }
};

/// to[i] = from at[i].
template <class Value>
struct Collect {
  View view;
  const Value* from;
  const Coord* at;
  float* to;

  DUPLEX_PORTABLE void operator()(std::uint32_t i) const {
    to[i] = static_cast<float>(from[view.offset(at[i])]);
  }
};

}  // namespace duplex::cudnn
