#include "core/onednn/operations/max_pool.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "core/onednn/parallel.h"
#include "core/processor/clones.h"

namespace duplex::onednn {
namespace {

constexpr int lanes = 8;  ///< Channels in a vector, however wide the processor's vectors are.
using Floats = float __attribute__((vector_size(4 * lanes)));
using Ints = std::int32_t __attribute__((vector_size(4 * lanes)));
using Shorts = std::int16_t __attribute__((vector_size(2 * lanes)));

// Vectors are passed by reference: by value, each processor's version would pass them differently.

template <class Vector, class Element>
inline void load(Vector& to, const Element* from) {
  std::memcpy(&to, from, sizeof to);
}

template <class Vector, class Element>
inline void store(Element* to, const Vector& from) {
  std::memcpy(to, &from, sizeof from);
}

/// One row of a map, in `vectors` * lanes neighbouring channels: row `row` of y in forward, of x in
/// backward. x, y and argmaxes point at these channels in row 0, column 0 of the map.
struct Row {
  const MaxPool::Axis* rows;
  const MaxPool::Axis* columns;
  std::size_t row;
  std::int64_t pixel;  ///< Elements from one pixel to the next.
};

template <int vectors>
[[gnu::always_inline]] inline void forward_row(const Row& at, float* y, std::int16_t* argmaxes,
                                               const float* x) {
  const MaxPool::Axis &rows = *at.rows, &columns = *at.columns;
  const MaxPool::Range row_taps = rows.taps[at.row];
  const std::int64_t top = static_cast<std::int64_t>(at.row) * rows.stride - rows.before;
  std::int64_t to = static_cast<std::int64_t>(at.row) * columns.out * at.pixel;
  for (std::int32_t out = 0; out < columns.out; ++out, to += at.pixel) {
    const MaxPool::Range taps = columns.taps[static_cast<std::size_t>(out)];
    const std::int64_t left = std::int64_t{out} * columns.stride - columns.before;
    Floats best[vectors] = {};
    Ints argmax[vectors] = {};
    for (int v = 0; v < vectors; ++v) {
      best[v] -= std::numeric_limits<float>::infinity();
      argmax[v] += (row_taps.begin * columns.window + taps.begin);
    }
    for (std::int32_t r = row_taps.begin; r < row_taps.end; ++r) {
      const float* from = x + ((top + r) * columns.in + left) * at.pixel;
      for (std::int32_t t = taps.begin; t < taps.end; ++t) {
        const Ints tap = Ints{} + (r * columns.window + t);
        for (int v = 0; v < vectors; ++v) {
          Floats value;
          load(value, from + t * at.pixel + v * lanes);
          // The first of equals stays the maximum, and so does NaN, which compares with nothing.
          const Ints is_number = best[v] == best[v];  // NOLINT(misc-redundant-expression)
          const Ints wins = ~(value <= best[v]) & is_number;
          best[v] = reinterpret_cast<Floats>((reinterpret_cast<Ints>(value) & wins) |
                                             (reinterpret_cast<Ints>(best[v]) & ~wins));
          argmax[v] = (tap & wins) | (argmax[v] & ~wins);
        }
      }
    }
    for (int v = 0; v < vectors; ++v) {
      store(y + to + v * lanes, best[v]);
      store(argmaxes + to + v * lanes, __builtin_convertvector(argmax[v], Shorts));
    }
  }
}

/// Gathers gradients instead of scattering them, so that every element of dx is written once.
template <int vectors>
[[gnu::always_inline]] inline void backward_row(const Row& at, float* dx, const float* dy,
                                                const std::int16_t* argmaxes) {
  const MaxPool::Axis &rows = *at.rows, &columns = *at.columns;
  const MaxPool::Range row_outputs = rows.outputs[at.row];
  const std::int32_t bottom = static_cast<std::int32_t>(at.row) + rows.before;
  std::int64_t to = static_cast<std::int64_t>(at.row) * columns.in * at.pixel;
  for (std::int32_t in = 0; in < columns.in; ++in, to += at.pixel) {
    const MaxPool::Range outputs = columns.outputs[static_cast<std::size_t>(in)];
    Floats sum[vectors] = {};
    for (std::int32_t r = row_outputs.begin; r < row_outputs.end; ++r) {
      const std::int32_t first_tap = (bottom - r * rows.stride) * columns.window;
      for (std::int32_t c = outputs.begin; c < outputs.end; ++c) {
        const Ints tap = Ints{} + (first_tap + in + columns.before - c * columns.stride);
        const std::int64_t from = (std::int64_t{r} * columns.out + c) * at.pixel;
        for (int v = 0; v < vectors; ++v) {
          Shorts narrow;
          Floats value;
          load(narrow, argmaxes + from + v * lanes);
          load(value, dy + from + v * lanes);
          const Ints won = __builtin_convertvector(narrow, Ints) == tap;
          sum[v] += reinterpret_cast<Floats>(reinterpret_cast<Ints>(value) & won);
        }
      }
    }
    for (int v = 0; v < vectors; ++v) store(dx + to + v * lanes, sum[v]);
  }
}

DUPLEX_CLONES void forward_narrow(const Row& at, float* y, std::int16_t* argmaxes, const float* x) {
  forward_row<1>(at, y, argmaxes, x);
}
DUPLEX_CLONES void forward_wide(const Row& at, float* y, std::int16_t* argmaxes, const float* x) {
  forward_row<2>(at, y, argmaxes, x);
}
DUPLEX_CLONES void backward_narrow(const Row& at, float* dx, const float* dy,
                                   const std::int16_t* argmaxes) {
  backward_row<1>(at, dx, dy, argmaxes);
}
DUPLEX_CLONES void backward_wide(const Row& at, float* dx, const float* dy,
                                 const std::int16_t* argmaxes) {
  backward_row<2>(at, dx, dy, argmaxes);
}

/// Calls work(row, x offset, y offset) for every row of every image, `width` channels at a time.
template <class Work>
void for_each_row(const ChannelBlocks& x, const ChannelBlocks& y, std::int64_t rows,
                  std::int64_t width, const Work& work) {
  const std::int64_t parts = x.padded / width;
  parallel_for(x.images * parts * rows, x.images * x.image_size(),
               [&](std::int64_t begin, std::int64_t end) {
                 for (std::int64_t i = begin; i < end; ++i) {
                   const std::int64_t image = i / (parts * rows),
                                      channel = i / rows % parts * width;
                   work(static_cast<std::size_t>(i % rows), x.offset(image, channel),
                        y.offset(image, channel));
                 }
               });
}

bool fast_here() {
#ifdef __x86_64__
  return __builtin_cpu_supports("avx2");
#else
  return false;
#endif
}

}  // namespace

MaxPool::Axis::Axis(std::int64_t in_extent, std::int64_t out_extent, std::int64_t window_extent,
                    std::int64_t stride_extent, std::int64_t before_extent)
    : in(static_cast<std::int32_t>(in_extent)),
      out(static_cast<std::int32_t>(out_extent)),
      window(static_cast<std::int32_t>(window_extent)),
      stride(static_cast<std::int32_t>(stride_extent)),
      before(static_cast<std::int32_t>(before_extent)) {
  outputs.assign(static_cast<std::size_t>(in), {out, 0});
  for (std::int32_t o = 0; o < out; ++o) {
    const std::int32_t first = o * stride - before;
    taps.push_back({std::max(-first, 0), std::min(window, in - first)});
    for (std::int32_t i = first + taps.back().begin; i < first + taps.back().end; ++i) {
      Range& holding = outputs[static_cast<std::size_t>(i)];
      holding = {std::min(holding.begin, o), o + 1};
    }
  }
}

bool MaxPool::suits(const Window& window, const ChannelBlocks& x) {
  return fast_here() && x.block % lanes == 0 &&
         window.height * window.width <= std::numeric_limits<std::int16_t>::max();
}

MaxPool::MaxPool(const Window& window, const TensorDesc& x, const TensorDesc& y)
    : rows_(x.shape.h(), y.shape.h(), window.height, window.stride_y, window.padding.top),
      columns_(x.shape.w(), y.shape.w(), window.width, window.stride_x, window.padding.left),
      x_(channel_blocks(x)),
      y_(channel_blocks(y)) {}

void MaxPool::forward(float* y, std::int16_t* argmaxes, const float* x) const {
  const bool wide = x_.block % (2 * lanes) == 0;
  for_each_row(
      x_, y_, rows_.out, wide ? 2 * lanes : lanes,
      [&](std::size_t row, std::int64_t x_offset, std::int64_t y_offset) {
        const auto run = wide ? forward_wide : forward_narrow;
        run({&rows_, &columns_, row, x_.block}, y + y_offset, argmaxes + y_offset, x + x_offset);
      });
}

void MaxPool::backward(float* dx, const float* dy, const std::int16_t* argmaxes) const {
  const bool wide = x_.block % (2 * lanes) == 0;
  for_each_row(
      x_, y_, rows_.in, wide ? 2 * lanes : lanes,
      [&](std::size_t row, std::int64_t x_offset, std::int64_t y_offset) {
        const auto run = wide ? backward_wide : backward_narrow;
        run({&rows_, &columns_, row, x_.block}, dx + x_offset, dy + y_offset, argmaxes + y_offset);
      });
}

}  // namespace duplex::onednn
