// Concatenation along channels, and padding with channels of zeros, in plain loops. A sample's
// channels lie one after the other, so its part of each input is one contiguous piece of y.
#include "core/reference/concat.h"

#include <algorithm>

namespace duplex::reference {
namespace {

std::int64_t sample_elements(const TensorDesc& desc) {
  return desc.shape.elements() / desc.shape.n();
}

class ReferenceConcat : public Concat {
 public:
  explicit ReferenceConcat(const std::vector<TensorDesc>& inputs) {
    x = inputs;
    std::vector<Shape> shapes;
    std::int64_t offset = 0;
    for (const TensorDesc& input : inputs) {
      shapes.push_back(input.shape);
      offset_.push_back(offset);
      offset += sample_elements(input);
    }
    y = plain_desc(concat_shape(shapes));
  }

  void forward(Tensor& y_out, const std::vector<Tensor>& inputs) override {
    for (std::size_t input = 0; input < x.size(); ++input) {
      const std::int64_t piece = sample_elements(x[input]);
      for (std::int64_t n = 0; n < y.shape.n(); ++n) {
        const float* from = inputs[input].data + n * piece;
        std::copy(from, from + piece, y_out.data + n * sample_elements(y) + offset_[input]);
      }
    }
  }

  void backward(Tensor& dx, int index, const Tensor& dy, const Tensor* mask_by) override {
    const auto input = static_cast<std::size_t>(index);
    const std::int64_t piece = sample_elements(x[input]);
    for (std::int64_t n = 0; n < y.shape.n(); ++n) {
      const std::int64_t offset = n * sample_elements(y) + offset_[input];
      float* to = dx.data + n * piece;
      for (std::int64_t i = 0; i < piece; ++i) {
        const bool passes = mask_by == nullptr || mask_by->data[offset + i] > 0.0F;
        to[i] = passes ? dy.data[offset + i] : 0.0F;
      }
    }
  }

 private:
  std::vector<std::int64_t> offset_;  ///< The offset of each input's piece in a sample of y.
};

class ReferencePadChannels : public PadChannels {
 public:
  ReferencePadChannels(std::int64_t channels, const TensorDesc& x_desc) {
    x = x_desc;
    y = plain_desc(pad_channels_shape(channels, x.shape));
  }

  void forward(Tensor& y_out, const Tensor& x_in) override {
    std::fill(y_out.data, y_out.data + y_out.stored(), 0.0F);
    for (std::int64_t n = 0; n < x.shape.n(); ++n) {
      const float* from = x_in.data + n * sample_elements(x);
      std::copy(from, from + sample_elements(x), y_out.data + n * sample_elements(y));
    }
  }

  void backward(Tensor& dx, const Tensor& dy) override {
    for (std::int64_t n = 0; n < x.shape.n(); ++n) {
      const float* from = dy.data + n * sample_elements(y);
      std::copy(from, from + sample_elements(x), dx.data + n * sample_elements(x));
    }
  }
};

}  // namespace

std::unique_ptr<Concat> make_concat(const std::vector<TensorDesc>& x) {
  return std::make_unique<ReferenceConcat>(x);
}

std::unique_ptr<PadChannels> make_pad_channels(std::int64_t channels, const TensorDesc& x) {
  return std::make_unique<ReferencePadChannels>(channels, x);
}

}  // namespace duplex::reference
