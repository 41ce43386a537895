// Max pooling over channel blocks, own kernels: oneDNN 2.6's take two to five times as long.
#pragma once
#include <cstdint>
#include <vector>

#include "core/onednn/layout.h"
#include "core/operations.h"

namespace duplex::onednn {

class MaxPoolKernel {
 public:
  /// Whether it can run on activations laid out like these, and this processor makes it pay.
  static bool suits(const Window& window, const ChannelBlocks& x, const ChannelBlocks& y);

  MaxPoolKernel() = default;
  /// x and y lie alike; their extents are those of the shapes.
  MaxPoolKernel(const Window& window, const Shape& x_shape, const Shape& y_shape,
                const ChannelBlocks& x, const ChannelBlocks& y);

  /// Elements of `winners`, which says for every element of y where in its window x won.
  std::int64_t winners() const { return y_.images * y_.image_size(); }

  void forward(float* y, std::int16_t* winners, const float* x) const;
  void backward(float* dx, const float* dy, const std::int16_t* winners) const;

 private:
  /// What lies below and above on one axis: for an output the taps of its window that lie on the
  /// map, for an input the outputs whose windows hold it.
  struct Range {
    std::int32_t begin, end;
  };
  struct Axis {
    std::int32_t stride = 1, before = 0;
    std::vector<Range> taps;     ///< By output: tap t reads input out * stride - before + t.
    std::vector<Range> windows;  ///< By input.
  };
  struct Row;

  static Axis make_axis(std::int64_t in, std::int64_t out, std::int64_t window, std::int64_t stride,
                        std::int64_t before);
  template <class Work>
  void for_each_row(std::int64_t rows, std::int64_t columns, const Work& work) const;

  Axis rows_, columns_;
  std::int32_t window_width_ = 1;
  std::int64_t x_width_ = 0, y_width_ = 0;
  ChannelBlocks x_, y_;
};

}  // namespace duplex::onednn
