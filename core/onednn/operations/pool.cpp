#include "core/onednn/operations/pool.h"

#include <algorithm>
#include <cmath>

#include "core/onednn/compat.h"
#include "core/onednn/layout.h"
#include "core/onednn/operations/max_pool.h"

namespace duplex::onednn {
namespace {

class OwnMaxPool final : public Pool {
 public:
  OwnMaxPool(ContextPtr context, const PoolSpec& spec, const TensorDesc& x_desc)
      : context_(std::move(context)) {
    x = x_desc;
    y = laid_out_like(x, output_shape(spec, x.shape));
    kernel_ = MaxPool(spec.window, x, y);
    argmaxes_ = KeptMemory(context_, y.bytes / sizeof(float) * sizeof(std::int16_t));
  }

  void forward(Tensor& y_out, const Tensor& x_in) override {
    context_->enter();
    kernel_.forward(y_out.data, argmaxes(), x_in.data);
  }

  void backward(Tensor& dx, const Tensor& dy) override {
    context_->enter();
    kernel_.backward(dx.data, dy.data, argmaxes());
  }

 private:
  std::int16_t* argmaxes() { return static_cast<std::int16_t*>(argmaxes_.data()); }

  ContextPtr context_;
  MaxPool kernel_;
  KeptMemory argmaxes_;
};

class OneDnnPool final : public Pool {
 public:
  OneDnnPool(const ContextPtr& context, const std::string& what, const PoolSpec& spec,
             const TensorDesc& x_desc)
      : context_(context), spec_(spec) {
    x = x_desc;
    y = laid_out_like(x, output_shape(spec, x.shape));
    const dnnl::memory::desc x_memory = memory_of(x), y_memory = memory_of(y);
    const Window& window = spec.window;
    const dnnl::memory::dims strides = {window.stride_y, window.stride_x};
    const dnnl::memory::dims kernel = {window.height, window.width};
    const dnnl::memory::dims before = {window.padding.top, window.padding.left};
    const dnnl::memory::dims after = {
        overhang(y.shape.h(), x.shape.h(), window.height, window.stride_y, window.padding.top),
        overhang(y.shape.w(), x.shape.w(), window.width, window.stride_x, window.padding.left)};
    const dnnl::algorithm algorithm = spec.kind == PoolKind::max
                                          ? dnnl::algorithm::pooling_max
                                          : dnnl::algorithm::pooling_avg_exclude_padding;
    context->enter();
    const auto forward_pd = describe_pool(context->engine(), context->attributes(), algorithm,
                                          x_memory, y_memory, strides, kernel, before, after);
    if (!forward_pd) throw dnnl::error(dnnl_unimplemented, "no implementation for these extents");
    const auto backward_pd =
        describe_pool_backward(context->engine(), context->attributes(), forward_pd, algorithm,
                               x_memory, y_memory, strides, kernel, before, after);
    if (!backward_pd) throw dnnl::error(dnnl_unimplemented, "no backward for these extents");
    argmaxes_ = KeptMemory(context, forward_pd.workspace_desc().get_size());
    forward_ =
        BoundPrimitive(context, what + ", forward", forward_pd, dnnl::pooling_forward(forward_pd),
                       {{DNNL_ARG_SRC, x_memory},
                        {DNNL_ARG_DST, y_memory},
                        {DNNL_ARG_WORKSPACE, forward_pd.workspace_desc()}});
    backward_ = BoundPrimitive(context, what + ", backward", backward_pd,
                               dnnl::pooling_backward(backward_pd),
                               {{DNNL_ARG_DIFF_DST, y_memory},
                                {DNNL_ARG_DIFF_SRC, x_memory},
                                {DNNL_ARG_WORKSPACE, forward_pd.workspace_desc()}});
  }

  void forward(Tensor& y_out, const Tensor& x_in) override {
    forward_.run({{DNNL_ARG_SRC, x_in.data},
                  {DNNL_ARG_DST, y_out.data},
                  {DNNL_ARG_WORKSPACE, argmaxes_.data()}});
    if (spec_.kind == PoolKind::max && context_->keeps_nan()) spread_nan(y_out, x_in);
  }

  void backward(Tensor& dx, const Tensor& dy) override {
    backward_.run({{DNNL_ARG_DIFF_DST, dy.data},
                   {DNNL_ARG_DIFF_SRC, dx.data},
                   {DNNL_ARG_WORKSPACE, argmaxes_.data()}});
  }

 private:
  /// Returns the padding that the last window really reaches, which is less than given where
  /// strides leave a rest.
  static std::int64_t overhang(std::int64_t out, std::int64_t in, std::int64_t window,
                               std::int64_t stride, std::int64_t before) {
    return std::max<std::int64_t>((out - 1) * stride + window - in - before, 0);
  }

  /// Puts NaN back, because oneDNN's maximum of numbers and NaN is a number.
  void spread_nan(Tensor& y_out, const Tensor& x_in) const {
    const ChannelBlocks from = channel_blocks(x), to = channel_blocks(y);
    const Window& window = spec_.window;
    const std::int64_t width = x.shape.w();
    for (std::int64_t n = 0; n < from.images; ++n) {
      for (std::int64_t c = 0; c < from.channels; ++c) {
        const float* map = x_in.data + from.offset(n, c);
        for (std::int64_t i = 0; i < to.pixels; ++i) {
          const std::int64_t top = i / y.shape.w() * window.stride_y - window.padding.top,
                             left = i % y.shape.w() * window.stride_x - window.padding.left;
          const std::int64_t bottom = std::min(top + window.height, x.shape.h()),
                             right = std::min(left + window.width, width);
          for (std::int64_t row = std::max<std::int64_t>(top, 0); row < bottom; ++row) {
            for (std::int64_t at = std::max<std::int64_t>(left, 0); at < right; ++at) {
              const float value = map[(row * width + at) * from.block];
              if (std::isnan(value)) y_out.data[to.offset(n, c) + i * to.block] = value;
            }
          }
        }
      }
    }
  }

  ContextPtr context_;
  PoolSpec spec_;
  BoundPrimitive forward_, backward_;
  KeptMemory argmaxes_;
};

}  // namespace

std::unique_ptr<Pool> make_pool(const ContextPtr& context, const PoolSpec& spec,
                                const TensorDesc& x) {
  if (spec.kind == PoolKind::max && MaxPool::suits(spec.window, channel_blocks(x))) {
    return std::make_unique<OwnMaxPool>(context, spec, x);
  }
  const std::string what = "pooling of " + x.shape.str();
  return translate(what, [&] { return std::make_unique<OneDnnPool>(context, what, spec, x); });
}

}  // namespace duplex::onednn
