#include "core/cudnn/concat.h"

#include "core/cudnn/elements.h"
#include "core/cudnn/kernels.h"
#include "core/cudnn/launch.h"
#include "core/cudnn/layout.h"

namespace duplex::cudnn {
namespace {

/// In the layout of the first that has one.
Order order_of(const std::vector<TensorDesc>& x) {
  for (const TensorDesc& desc : x)
    if (!desc.plain()) return view_of(desc).order;
  return Order::nchw;
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
    y = desc_of(concat_shape(shapes), order_of(descs));
  }

  void forward(Tensor& y_out, const std::vector<Tensor>& inputs) override {
    for (std::size_t i = 0; i < inputs.size(); ++i)
      for_each(*context_, "concatenation", inputs[i].stored(),
               IntoSlice{view_of(y), view_of(x[i]), y_out.data, inputs[i].data, first_[i]});
  }

  void backward(Tensor& dx, int index, const Tensor& dy, const Tensor* mask_by) override {
    const auto i = static_cast<std::size_t>(index);
    for_each(*context_, "gradient of a concatenation", dx.stored(),
             FromSlice{view_of(y), view_of(x[i]), dx.data, dy.data,
                       mask_by == nullptr ? nullptr : mask_by->data, first_[i]});
  }

 private:
  ContextPtr context_;
  std::vector<std::uint32_t> first_;  ///< Channel, of every input.
};

class GpuPadChannels final : public PadChannels {
 public:
  GpuPadChannels(const ContextPtr& context, std::int64_t channels, const TensorDesc& desc)
      : context_(context) {
    x = desc;
    y = desc_of(pad_channels_shape(channels, x.shape), view_of(x).order);
  }

  void forward(Tensor& y_out, const Tensor& x_in) override {
    fill(*context_, y_out, 0.0F);
    for_each(*context_, "padding of channels", x_in.stored(),
             IntoSlice{view_of(y), view_of(x), y_out.data, x_in.data, 0});
  }
  void backward(Tensor& dx, const Tensor& dy) override {
    for_each(*context_, "gradient of a padding of channels", dx.stored(),
             FromSlice{view_of(y), view_of(x), dx.data, dy.data, nullptr, 0});
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
