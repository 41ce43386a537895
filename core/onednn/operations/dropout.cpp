#include "core/onednn/operations/dropout.h"

#include "core/error.h"
#include "core/onednn/kernels.h"
#include "core/onednn/layout.h"
#include "core/onednn/parallel.h"

namespace duplex::onednn {
namespace {

class OneDnnDropout final : public Dropout {
 public:
  OneDnnDropout(const ContextPtr& context, float rate, const TensorDesc& desc)
      : context_(context), rate_(rate) {
    if (!(rate >= 0.0F && rate < 1.0F)) {
      throw Error("dropout: the rate " + std::to_string(rate) + " is not in [0, 1)");
    }
    x = y = desc;
    factors_ = KeptMemory(context, desc.bytes);
    if (!desc.plain()) {
      to_layout_ = make_reorder(context, plain_memory(dims_of(desc.shape)), memory_of(desc));
      context->reserve_staging(Context::slot_x, plain_desc(desc.shape).bytes);
    }
  }

  void forward(Tensor& y_out, const Tensor& x_in, const DropoutDraw& draw) override {
    context_->enter();
    if (x.plain()) {
      draw_factors(factors(), draw);
    } else {
      float* plain = context_->staging(Context::slot_x);
      draw_factors(plain, draw);
      to_layout_.run({{DNNL_ARG_FROM, plain}, {DNNL_ARG_TO, factors()}});
    }
    apply(y_out, x_in);
  }

  void backward(Tensor& dx, const Tensor& dy) override {
    context_->enter();
    apply(dx, dy);
  }

 private:
  float* factors() { return static_cast<float*>(factors_.data()); }

  /// Draws the factors in logical order.
  void draw_factors(float* to, const DropoutDraw& draw) const {
    const std::int64_t count = x.shape.elements();
    const auto sample = static_cast<std::uint64_t>(count / x.shape.n());
    const float kept = 1.0F / (1.0F - rate_);
    parallel_elements(count, [&](std::int64_t begin, std::int64_t end) {
      draw.fill(to + begin, static_cast<std::uint64_t>(end - begin), sample,
                static_cast<std::uint64_t>(begin));
      for (std::int64_t i = begin; i < end; ++i) to[i] = to[i] < rate_ ? 0.0F : kept;
    });
  }

  void apply(Tensor& to, const Tensor& from) {
    const float* const by = factors();
    parallel_elements(to.stored(), [&, by](std::int64_t begin, std::int64_t end) {
      multiply(to.data + begin, from.data + begin, by + begin, end - begin);
    });
  }

  ContextPtr context_;
  float rate_;
  KeptMemory factors_;  ///< The factors of the last forward, in x's layout: 0 or 1 / (1 - rate).
  BoundPrimitive to_layout_;
};

}  // namespace

std::unique_ptr<Dropout> make_dropout(const ContextPtr& context, float rate, const TensorDesc& x) {
  return std::make_unique<OneDnnDropout>(context, rate, x);
}

}  // namespace duplex::onednn
