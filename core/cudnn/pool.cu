// With kernels of our own: cuDNN's backward wants x and y, which the plan of memory has long given
// to others, and its padding is the same on opposite sides. Here a byte or two tell which element
// of a window won.
#include "core/cudnn/pool.h"

#include "core/cudnn/launch.h"
#include "core/cudnn/layout.h"
#include "core/cudnn/windows.h"
#include "core/error.h"

namespace duplex::cudnn {
namespace {

Slide slide_of(const Window& window) {
  const auto narrow = [](std::int64_t value) { return static_cast<std::int32_t>(value); };
  return {narrow(window.height),   narrow(window.width),       narrow(window.stride_y),
          narrow(window.stride_x), narrow(window.padding.top), narrow(window.padding.left)};
}

class GpuPool : public Pool {
 public:
  GpuPool(const ContextPtr& context, const PoolSpec& spec, const TensorDesc& desc)
      : context_(context), slide_(slide_of(spec.window)) {
    x = desc;
    y = desc_of(output_shape(spec, x.shape), view_of(x).order, view_of(x).type);
  }

 protected:
  ContextPtr context_;
  Slide slide_;
};

template <class Winner>
class GpuMaxPool final : public GpuPool {
 public:
  GpuMaxPool(const ContextPtr& context, const PoolSpec& spec, const TensorDesc& desc)
      : GpuPool(context, spec, desc),
        winner_(context->allocate(static_cast<std::size_t>(y.shape.elements()) * sizeof(Winner))) {}

  void forward(Tensor& y_out, const Tensor& x_in) override {
    with_type(view_of(x).type, [&](auto number) {
      using Value = decltype(number);
      for_each_group(*context_, "max pooling", y,
                     MaxPool<Value, Winner>{view_of(x), view_of(y), slide_, elements<Value>(y_out),
                                            winners(), elements<Value>(x_in)});
    });
  }
  void backward(Tensor& dx, const Tensor& dy) override {
    with_type(view_of(x).type, [&](auto number) {
      using Value = decltype(number);
      for_each_group(
          *context_, "gradient of max pooling", x,
          MaxPoolBackward<Value, Winner>{view_of(x), view_of(y), slide_, elements<Value>(dx),
                                         winners(), elements<Value>(dy)});
    });
  }

 private:
  Winner* winners() const { return static_cast<Winner*>(winner_.data()); }

  Buffer winner_;  ///< Of the last forward, for every output.
};

class GpuAveragePool final : public GpuPool {
 public:
  using GpuPool::GpuPool;

  void forward(Tensor& y_out, const Tensor& x_in) override {
    with_type(view_of(x).type, [&](auto number) {
      using Value = decltype(number);
      for_each_group(*context_, "average pooling", y,
                     AveragePool<Value>{view_of(x), view_of(y), slide_, elements<Value>(y_out),
                                        elements<Value>(x_in)});
    });
  }
  void backward(Tensor& dx, const Tensor& dy) override {
    with_type(view_of(x).type, [&](auto number) {
      using Value = decltype(number);
      for_each_group(*context_, "gradient of average pooling", x,
                     AveragePoolBackward<Value>{view_of(x), view_of(y), slide_, elements<Value>(dx),
                                                elements<Value>(dy)});
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
