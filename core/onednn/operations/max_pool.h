// Max pooling over blocks of channels with our own kernels, since oneDNN 2.6's take two to five
// times as long.
#pragma once
#include <cstdint>
#include <vector>

#include "core/onednn/layout.h"
#include "core/operations.h"

namespace duplex::onednn {

class MaxPool {
 public:
  /// Returns whether it can run on activations laid out like x, and is faster than oneDNN's here.
  static bool suits(const Window& window, const ChannelBlocks& x);

  MaxPool() = default;
  /// x and y have the same blocks of channels.
  MaxPool(const Window& window, const TensorDesc& x, const TensorDesc& y);

  /// `argmaxes` gets, for every stored element of y, the row-major position of the maximum in its
  /// window.
  void forward(float* y, std::int16_t* argmaxes, const float* x) const;
  void backward(float* dx, const float* dy, const std::int16_t* argmaxes) const;

  struct Range {
    std::int32_t begin = 0, end = 0;
  };
  /// One direction of the map: tap t of the window of output `out` is input out * stride - before +
  /// t.
  struct Axis {
    std::int32_t in = 0, out = 0, window = 1, stride = 1, before = 0;
    std::vector<Range> taps;     ///< By output: the taps that lie on the map.
    std::vector<Range> outputs;  ///< By input: the outputs whose window holds it.

    Axis() = default;
    Axis(std::int64_t in, std::int64_t out, std::int64_t window, std::int64_t stride,
         std::int64_t before);
  };

 private:
  Axis rows_, columns_;
  ChannelBlocks x_, y_;
};

}  // namespace duplex::onednn
