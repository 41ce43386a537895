// LRN uses our own kernels: cuDNN's backward needs y, whose memory the memory plan has given to
// other tensors by then.
#include "core/cudnn/operations/lrn.h"

#include "core/cudnn/kernels/launch.h"
#include "core/cudnn/kernels/windows.h"
#include "core/cudnn/layout.h"
#include "core/error.h"

namespace duplex::cudnn {
namespace {

class GpuLrn final : public Lrn {
 public:
  GpuLrn(const ContextPtr& context, const LrnSpec& spec, const TensorDesc& desc)
      : context_(context), spec_(spec), scale_(context->allocate(plain_desc(desc.shape).bytes)) {
    if (spec.size < 1 || spec.size % 2 == 0) throw Error("LRN: the size must be odd");
    x = y = desc;
  }

  void forward(Tensor& y_out, const Tensor& x_in) override {
    with_type(view_of(x).type, [&](auto number) {
      using Value = decltype(number);
      for_each_group(*context_, "LRN", y,
                     LrnForward<Value>{view_of(x), reach(), share(), spec_.beta, spec_.k,
                                       elements<Value>(y_out), scale(), elements<Value>(x_in)});
    });
  }
  void backward(Tensor& dx, const Tensor& dy, const Tensor& x_in) override {
    with_type(view_of(x).type, [&](auto number) {
      using Value = decltype(number);
      for_each_group(*context_, "gradient of LRN", x,
                     LrnBackward<Value>{view_of(x), reach(), 2.0F * spec_.beta * share(),
                                        spec_.beta, elements<Value>(dx), elements<Value>(dy),
                                        elements<Value>(x_in), scale()});
    });
  }

 private:
  std::int32_t reach() const { return static_cast<std::int32_t>(spec_.size / 2); }
  float share() const { return spec_.alpha / static_cast<float>(spec_.size); }
  float* scale() const { return static_cast<float*>(scale_.data()); }

  ContextPtr context_;
  LrnSpec spec_;
  Buffer scale_;  ///< Every element's scale in the last forward.
};

}  // namespace

std::unique_ptr<Lrn> make_lrn(const ContextPtr& context, const LrnSpec& spec, const TensorDesc& x) {
  return std::make_unique<GpuLrn>(context, spec, x);
}

}  // namespace duplex::cudnn
