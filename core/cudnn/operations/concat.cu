#include "core/cudnn/operations/concat.h"

#include "core/cudnn/kernels/elements.h"
#include "core/cudnn/kernels/kernels.h"
#include "core/cudnn/kernels/launch.h"
#include "core/cudnn/layout.h"

namespace duplex::cudnn {
namespace {

/// Returns the description of y, in the layout of the first input that is not plain.
TensorDesc joined(const std::vector<TensorDesc>& x, const Shape& shape) {
  for (const TensorDesc& desc : x)
    if (!desc.plain()) return desc_of(shape, view_of(desc).order, view_of(desc).type);
  return plain_desc(shape);
}

/// Copies x into y, from channel `first` on.
void into_slice(const Context& context, const char* what, Tensor& y, const Tensor& x,
                std::uint32_t first) {
  with_types(view_of(y.desc), view_of(x.desc), [&](auto to_number, auto from_number) {
    using To = decltype(to_number);
    using From = decltype(from_number);
    for_each_group(
        context, what, x.desc,
        IntoSlice<To, From>{
            {view_of(y.desc), view_of(x.desc), first}, elements<To>(y), elements<From>(x)});
  });
}

/// Copies the channels of dy from `first` on into dx, and masks them by [y > 0] where `y` is not
/// null.
void from_slice(const Context& context, const char* what, Tensor& dx, const Tensor& dy,
                const Tensor* y, std::uint32_t first) {
  with_types(view_of(dx.desc), view_of(dy.desc), [&](auto to_number, auto from_number) {
    using To = decltype(to_number);
    using From = decltype(from_number);
    for_each_group(context, what, dx.desc,
                   FromSlice<To, From>{{view_of(dy.desc), view_of(dx.desc), first},
                                       elements<To>(dx),
                                       elements<From>(dy),
                                       y == nullptr ? nullptr : elements<From>(*y)});
  });
}

class GpuConcat final : public Concat {
 public:
  GpuConcat(const ContextPtr& context, const std::vector<TensorDesc>& descs) : context_(context) {
    std::vector<Shape> shapes;
    std::uint32_t first = 0;
    for (const TensorDesc& desc : descs) {
      shapes.push_back(desc.shape);
      first_.push_back(first);
      first += view_of(desc).c;
    }
    x = descs;
    y = joined(descs, concat_shape(shapes));
  }

  void forward(Tensor& y_out, const std::vector<Tensor>& inputs) override {
    for (std::size_t i = 0; i < inputs.size(); ++i)
      into_slice(*context_, "concatenation", y_out, inputs[i], first_[i]);
  }

  void backward(Tensor& dx, int index, const Tensor& dy, const Tensor* mask_by) override {
    const auto i = static_cast<std::size_t>(index);
    from_slice(*context_, "gradient of a concatenation", dx, dy, mask_by, first_[i]);
  }

 private:
  ContextPtr context_;
  std::vector<std::uint32_t> first_;  ///< Every input's first channel in y.
};

class GpuPadChannels final : public PadChannels {
 public:
  GpuPadChannels(const ContextPtr& context, std::int64_t channels, const TensorDesc& desc)
      : context_(context) {
    x = desc;
    y = desc_of(pad_channels_shape(channels, x.shape), view_of(x).order, view_of(x).type);
  }

  void forward(Tensor& y_out, const Tensor& x_in) override {
    fill(*context_, y_out, 0.0F);
    into_slice(*context_, "padding of channels", y_out, x_in, 0);
  }
  void backward(Tensor& dx, const Tensor& dy) override {
    from_slice(*context_, "gradient of a padding of channels", dx, dy, nullptr, 0);
  }

 private:
  ContextPtr context_;
};

}  // namespace

std::unique_ptr<Concat> make_concat(const ContextPtr& context, const std::vector<TensorDesc>& x) {
  return std::make_unique<GpuConcat>(context, x);
}

std::unique_ptr<PadChannels> make_pad_channels(const ContextPtr& context, std::int64_t channels,
                                               const TensorDesc& x) {
  return std::make_unique<GpuPadChannels>(context, channels, x);
}

}  // namespace duplex::cudnn
