// Pooling uses our own kernels: cuDNN's backward needs x and y, whose memory the memory plan has
// given to other tensors by then, and its padding is the same on opposite sides. Here a byte or two
// for each output tell which element of its window was the maximum.
#include "core/cudnn/operations/pool.h"

#include "core/cudnn/kernels/launch.h"
#include "core/cudnn/kernels/windows.h"
#include "core/cudnn/layout.h"
#include "core/error.h"

namespace duplex::cudnn {
namespace {

PoolWindow pool_window_of(const Window& window) {
  const auto narrow = [](std::int64_t value) { return static_cast<std::int32_t>(value); };
  return {narrow(window.height),   narrow(window.width),       narrow(window.stride_y),
          narrow(window.stride_x), narrow(window.padding.top), narrow(window.padding.left)};
}

class GpuPool : public Pool {
 public:
  GpuPool(const ContextPtr& context, const PoolSpec& spec, const TensorDesc& desc)
      : context_(context), window_(pool_window_of(spec.window)) {
    x = desc;
    y = desc_of(output_shape(spec, x.shape), view_of(x).order, view_of(x).type);
  }

 protected:
  ContextPtr context_;
  PoolWindow window_;
};

template <class Argmax>
class GpuMaxPool final : public GpuPool {
 public:
  GpuMaxPool(const ContextPtr& context, const PoolSpec& spec, const TensorDesc& desc)
      : GpuPool(context, spec, desc),
        argmax_(context->allocate(static_cast<std::size_t>(y.shape.elements()) * sizeof(Argmax))) {}

  void forward(Tensor& y_out, const Tensor& x_in) override {
    with_type(view_of(x).type, [&](auto number) {
      using Value = decltype(number);
      for_each_group(*context_, "max pooling", y,
                     MaxPool<Value, Argmax>{view_of(x), view_of(y), window_, elements<Value>(y_out),
                                            argmaxes(), elements<Value>(x_in)});
    });
  }
  void backward(Tensor& dx, const Tensor& dy) override {
    with_type(view_of(x).type, [&](auto number) {
      using Value = decltype(number);
      for_each_group(
          *context_, "gradient of max pooling", x,
          MaxPoolBackward<Value, Argmax>{view_of(x), view_of(y), window_, elements<Value>(dx),
                                         argmaxes(), elements<Value>(dy)});
    });
  }

 private:
  Argmax* argmaxes() const { return static_cast<Argmax*>(argmax_.data()); }

  Buffer argmax_;  ///< The argmax of every output of the last forward.
};

class GpuAveragePool final : public GpuPool {
 public:
  using GpuPool::GpuPool;

  void forward(Tensor& y_out, const Tensor& x_in) override {
    with_type(view_of(x).type, [&](auto number) {
      using Value = decltype(number);
      for_each_group(*context_, "average pooling", y,
                     AveragePool<Value>{view_of(x), view_of(y), window_, elements<Value>(y_out),
                                        elements<Value>(x_in)});
    });
  }
  void backward(Tensor& dx, const Tensor& dy) override {
    with_type(view_of(x).type, [&](auto number) {
      using Value = decltype(number);
      for_each_group(*context_, "gradient of average pooling", x,
                     AveragePoolBackward<Value>{view_of(x), view_of(y), window_,
                                                elements<Value>(dx), elements<Value>(dy)});
    });
  }
};

}  // namespace

std::unique_ptr<Pool> make_pool(const ContextPtr& context, const PoolSpec& spec,
                                const TensorDesc& x) {
  if (spec.kind == PoolKind::average) return std::make_unique<GpuAveragePool>(context, spec, x);
  const std::int64_t places = spec.window.height * spec.window.width;
  if (places <= 1 << 8) return std::make_unique<GpuMaxPool<std::uint8_t>>(context, spec, x);
  if (places <= 1 << 16) return std::make_unique<GpuMaxPool<std::uint16_t>>(context, spec, x);
  return std::make_unique<GpuMaxPool<std::uint32_t>>(context, spec, x);
}

}  // namespace duplex::cudnn
