// Both operations copy a range of channels between two activations. Where blocks of channels line
// up, each image (in NHWC, each pixel) has one contiguous run; otherwise they copy channel by
// channel.
#include "core/onednn/operations/concat.h"

#include <algorithm>

#include "core/error.h"
#include "core/onednn/kernels.h"
#include "core/onednn/layout.h"
#include "core/onednn/parallel.h"

namespace duplex::onednn {
namespace {

/// A slice pairs all channels of a `part` with as many of a `whole`, from channel `first` on.
class Slice {
 public:
  Slice(const TensorDesc& part, const TensorDesc& whole, std::int64_t first)
      : part_(channel_blocks(part)), whole_(channel_blocks(whole)), first_(first) {
    const std::int64_t channels = part_.channels;
    const bool both_nhwc = part_.block == channels && whole_.block == whole_.channels;
    const bool blocks_meet = part_.block == whole_.block && first % part_.block == 0;
    // A part that does not fill its last block may only be the end of the whole.
    const bool fills = channels % part_.block == 0 || first + channels == whole_.channels;
    if (both_nhwc && part_.block > 1) {
      runs_ = part_.images * part_.pixels;
      length_ = part_step_ = channels;
      whole_step_ = whole_.channels;
      whole_start_ = first;
    } else if (blocks_meet && fills) {
      runs_ = part_.images;
      length_ = part_step_ = part_.image_size();
      whole_step_ = whole_.image_size();
      whole_start_ = whole_.offset(0, first);
    }
  }

  /// Calls row(part offset, whole offset, length, part step, whole step) for pieces of equally
  /// spaced elements that together are the slice.
  template <class Row>
  void for_each_row(const Row& row) const {
    const std::int64_t elements = part_.images * part_.image_size();
    if (runs_ > 0) {
      parallel_for(elements, elements, [&](std::int64_t begin, std::int64_t end) {
        while (begin < end) {
          const std::int64_t run = begin / length_, at = begin % length_;
          const std::int64_t length = std::min(length_ - at, end - begin);
          row(run * part_step_ + at, run * whole_step_ + whole_start_ + at, length, 1, 1);
          begin += length;
        }
      });
    } else {
      const std::int64_t channels = part_.channels;
      parallel_for(part_.images * channels, elements, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) {
          const std::int64_t n = i / channels, c = i % channels;
          row(part_.offset(n, c), whole_.offset(n, first_ + c), part_.pixels, part_.block,
              whole_.block);
        }
      });
    }
  }

  /// Returns whether for_each_row leaves out padding of the part.
  bool skips_padding() const { return runs_ == 0 && part_.padded != part_.channels; }

  void insert(float* whole, const float* part) const {
    for_each_row([=](std::int64_t p, std::int64_t w, std::int64_t length, std::int64_t part_step,
                     std::int64_t whole_step) {
      const float* from = part + p;
      float* to = whole + w;
      if (part_step == 1 && whole_step == 1) {
        std::copy(from, from + length, to);
      } else {
        for (std::int64_t i = 0; i < length; ++i) to[i * whole_step] = from[i * part_step];
      }
    });
  }

  /// part = the slice of `whole`, times [the slice of y > 0] where there is a y.
  void extract(Tensor& part_out, const float* whole, const float* y) const {
    if (skips_padding()) std::fill(part_out.data, part_out.data + part_out.stored(), 0.0F);
    for_each_row([=, part = part_out.data](std::int64_t p, std::int64_t w, std::int64_t length,
                                           std::int64_t part_step, std::int64_t whole_step) {
      const float* from = whole + w;
      float* to = part + p;
      if (y != nullptr && part_step == 1 && whole_step == 1) {
        mask(to, from, y + w, length);
      } else if (y != nullptr) {
        for (std::int64_t i = 0; i < length; ++i) {
          to[i * part_step] = y[w + i * whole_step] > 0.0F ? from[i * whole_step] : 0.0F;
        }
      } else {
        for (std::int64_t i = 0; i < length; ++i) to[i * part_step] = from[i * whole_step];
      }
    });
  }

 private:
  ChannelBlocks part_, whole_;
  std::int64_t first_;
  std::int64_t runs_ = 0;  ///< Contiguous runs, all of `length_`; 0: go channel by channel.
  std::int64_t length_ = 0, part_step_ = 0, whole_step_ = 0, whole_start_ = 0;
};

void zero(float* data, std::int64_t count) {
  parallel_elements(count, [=](std::int64_t begin, std::int64_t end) {
    std::fill(data + begin, data + end, 0.0F);
  });
}

class OneDnnConcat final : public Concat {
 public:
  OneDnnConcat(ContextPtr context, const std::vector<TensorDesc>& inputs)
      : context_(std::move(context)) {
    x = inputs;
    std::vector<Shape> shapes;
    for (const TensorDesc& input : inputs) shapes.push_back(input.shape);
    const Shape shape = concat_shape(shapes);
    y = laid_out_like(inputs[0], shape);
    std::int64_t first = 0;
    for (const TensorDesc& input : inputs) {
      slices_.emplace_back(input, y, first);
      first += input.shape.c();
    }
    const ChannelBlocks blocks = channel_blocks(y);
    padded_ = blocks.padded != blocks.channels;
  }

  void forward(Tensor& y_out, const std::vector<Tensor>& inputs) override {
    context_->enter();
    if (padded_) zero(y_out.data, y_out.stored());
    for (std::size_t i = 0; i < slices_.size(); ++i) slices_[i].insert(y_out.data, inputs[i].data);
  }

  void backward(Tensor& dx, int index, const Tensor& dy, const Tensor* mask_by) override {
    context_->enter();
    slices_.at(static_cast<std::size_t>(index))
        .extract(dx, dy.data, mask_by == nullptr ? nullptr : mask_by->data);
  }

 private:
  ContextPtr context_;
  std::vector<Slice> slices_;
  bool padded_ = false;
};

class OneDnnPadChannels final : public PadChannels {
 public:
  OneDnnPadChannels(ContextPtr context, std::int64_t channels, const TensorDesc& x_desc)
      : context_(std::move(context)),
        slice_(x_desc, laid_out_like(x_desc, pad_channels_shape(channels, x_desc.shape)), 0) {
    x = x_desc;
    y = laid_out_like(x, pad_channels_shape(channels, x.shape));
  }

  void forward(Tensor& y_out, const Tensor& x_in) override {
    context_->enter();
    zero(y_out.data, y_out.stored());
    slice_.insert(y_out.data, x_in.data);
  }

  void backward(Tensor& dx, const Tensor& dy) override {
    context_->enter();
    slice_.extract(dx, dy.data, nullptr);
  }

 private:
  ContextPtr context_;
  Slice slice_;
};

}  // namespace

std::unique_ptr<Concat> make_concat(const ContextPtr& context, const std::vector<TensorDesc>& x) {
  return std::make_unique<OneDnnConcat>(context, x);
}

std::unique_ptr<PadChannels> make_pad_channels(const ContextPtr& context, std::int64_t channels,
                                               const TensorDesc& x) {
  return std::make_unique<OneDnnPadChannels>(context, channels, x);
}

}  // namespace duplex::onednn
