// A View says how the elements of a tensor lie on the GPU, in a form that kernels take.
#pragma once
#include <cstddef>
#include <cstdint>

#include "core/cudnn/kernels/bfloat16.h"
#include "core/cudnn/kernels/portable.h"

namespace duplex::cudnn {

enum class Order {
  nchw,  ///< Plain: row-major.
  nhwc   ///< Channels side by side.
};

enum class Type { float32, bf16 };

/// The coordinates of an element: its sample, channel, row and column.
struct Coord {
  std::uint32_t n, c, y, x;
};

/// The extents, order and type of a tensor of at most 2^31 - 1 elements, without padding.
struct View {
  std::uint32_t n = 1, c = 1, h = 1, w = 1;
  Order order = Order::nchw;
  Type type = Type::float32;

  DUPLEX_PORTABLE std::uint32_t map() const { return h * w; }
  DUPLEX_PORTABLE std::uint32_t elements() const { return n * c * h * w; }
  /// Returns whether the channels of a pixel lie side by side.
  DUPLEX_PORTABLE bool channels_last() const { return order == Order::nhwc || map() == 1; }
  /// Returns the elements of a run, which is contiguous and has all channels: a pixel in NHWC, a
  /// sample in NCHW.
  DUPLEX_PORTABLE std::uint32_t run() const { return order == Order::nhwc ? c : c * map(); }
  std::size_t bytes() const {
    return std::size_t{elements()} * (type == Type::bf16 ? sizeof(BFloat16) : sizeof(float));
  }

  DUPLEX_PORTABLE std::uint32_t offset(const Coord& p) const {
    return order == Order::nchw ? ((p.n * c + p.c) * h + p.y) * w + p.x
                                : ((p.n * h + p.y) * w + p.x) * c + p.c;
  }

  /// Returns the coordinates of the element at an offset.
  DUPLEX_PORTABLE Coord coord(std::uint32_t i) const {
    if (order == Order::nchw) {
      const std::uint32_t row = i / w, plane = row / h;
      return {plane / c, plane % c, row % h, i % w};
    }
    const std::uint32_t pixel = i / c, row = pixel / w;
    return {row / h, i % c, row % h, pixel % w};
  }
  DUPLEX_PORTABLE std::uint32_t channel(std::uint32_t i) const {
    return order == Order::nchw ? i / map() % c : i % c;
  }
};

/// Returns whether elements of equal coordinates have equal offsets.
inline bool same_layout(const View& a, const View& b) {
  return a.n == b.n && a.c == b.c && a.h == b.h && a.w == b.w && a.order == b.order;
}

/// Calls work(Value()), with a number of the type that elements of a tensor are stored as.
template <class Work>
void with_type(Type type, const Work& work) {
  if (type == Type::bf16) {
    work(BFloat16());
  } else {
    work(float());
  }
}

/// Calls work() with a number of the type of each of two tensors.
template <class Work>
void with_types(const View& a, const View& b, const Work& work) {
  with_type(a.type, [&](auto of_a) { with_type(b.type, [&](auto of_b) { work(of_a, of_b); }); });
}

}  // namespace duplex::cudnn
