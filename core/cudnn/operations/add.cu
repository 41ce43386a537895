#include "core/cudnn/operations/add.h"

#include "core/cudnn/kernels/elements.h"
#include "core/cudnn/kernels/launch.h"
#include "core/cudnn/layout.h"
#include "core/cudnn/operations/gradient_sum.h"
#include "core/error.h"

namespace duplex::cudnn {
namespace {

class GpuAdd final : public Add {
 public:
  GpuAdd(const ContextPtr& context, bool relu, const TensorDesc& a, const TensorDesc& b)
      : context_(context), relu_(relu), same_(same_layout(view_of(a), view_of(b))), b_(b) {
    if (a.shape != b.shape)
      throw Error("addition: " + a.shape.str() + " and " + b.shape.str() + " differ");
    x = y = a;
  }

  void forward(Tensor& y_out, const Tensor& a, const Tensor& b) override {
    with_types(view_of(x), view_of(b_), [&](auto number, auto other) {
      using Value = decltype(number);
      using Other = decltype(other);
      for_each_group(*context_, "addition", y,
                     Sum<Value, Other>{view_of(x), view_of(b_), elements<Value>(y_out),
                                       elements<Value>(a), elements<Other>(b), same_, relu_});
    });
  }

 private:
  ContextPtr context_;
  bool relu_, same_;
  TensorDesc b_;
};

class GpuGradientSum final : public GradientSum {
 public:
  explicit GpuGradientSum(const ContextPtr& context) : context_(context) {}

  void run(Tensor& out, const std::vector<Tensor>& inputs, const Tensor* y) override {
    with_type(view_of(out.desc).type, [&](auto number) {
      using Value = decltype(number);
      with_masked_sum<Value>(*context_, list_, out, inputs, y, [&](const auto& sum) {
        for_each_group(*context_, "sum of gradients", out.desc, sum);
      });
    });
  }

 private:
  ContextPtr context_;
  AddressList list_;
};

}  // namespace

std::unique_ptr<Add> make_add(const ContextPtr& context, bool relu, const TensorDesc& a,
                              const TensorDesc& b) {
  return std::make_unique<GpuAdd>(context, relu, a, b);
}

std::unique_ptr<GradientSum> make_gradient_sum(const ContextPtr& context, const TensorDesc&) {
  return std::make_unique<GpuGradientSum>(context);
}

}  // namespace duplex::cudnn
