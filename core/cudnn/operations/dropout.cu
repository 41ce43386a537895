#include "core/cudnn/operations/dropout.h"

#include "core/cudnn/kernels/elements.h"
#include "core/cudnn/kernels/launch.h"
#include "core/cudnn/layout.h"
#include "core/error.h"

namespace duplex::cudnn {
namespace {

class GpuDropout final : public Dropout {
 public:
  GpuDropout(const ContextPtr& context, float rate, const TensorDesc& desc)
      : context_(context), rate_(rate) {
    if (!(rate >= 0.0F && rate < 1.0F))
      throw Error("dropout: the rate " + std::to_string(rate) + " is not in [0, 1)");
    x = y = desc;
    if (context->graphs()) stored_ = context->allocate(sizeof(Draws));
  }

  void prepare(const DropoutDraw& draw) override {
    for_each(*context_, "dropout", 1, StoreDraws{stored(), draws_of(draw)});
  }

  void forward(Tensor& y_out, const Tensor& x_in, const DropoutDraw& draw) override {
    draw_ = draw;
    if (stored() != nullptr && !context_->capturing()) prepare(draw);
    run(y_out, x_in);
  }
  void backward(Tensor& dx, const Tensor& dy) override { run(dx, dy); }

 private:
  void run(Tensor& to, const Tensor& from) const {
    const View view = view_of(x);
    with_type(view.type, [&](auto number) {
      using Value = decltype(number);
      for_each(*context_, "dropout", x,
               Drop<Value>{view, elements<Value>(to), elements<Value>(from), rate_,
                           1.0F / (1.0F - rate_), draws_of(draw_), stored()});
    });
  }
  Draws draws_of(const DropoutDraw& draw) const {
    const View view = view_of(x);
    const std::uint64_t own = std::uint64_t{view.c} * view.map(), sample = draw.stride(own);
    return {draw.seed, draw.stream, draw.first_sample * sample + draw.first_element, sample - own};
  }
  Draws* stored() const { return static_cast<Draws*>(stored_.data()); }

  ContextPtr context_;
  float rate_;
  DropoutDraw draw_;  ///< The draw of the last forward.
  /// The draws, where forward and backward may be recorded: either may be, and the other not.
  Buffer stored_;
};

}  // namespace

std::unique_ptr<Dropout> make_dropout(const ContextPtr& context, float rate, const TensorDesc& x) {
  return std::make_unique<GpuDropout>(context, rate, x);
}

}  // namespace duplex::cudnn
