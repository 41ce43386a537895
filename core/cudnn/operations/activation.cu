#include "core/cudnn/operations/activation.h"

#include "core/cudnn/kernels/elements.h"
#include "core/cudnn/kernels/launch.h"

namespace duplex::cudnn {
namespace {

template <template <class> class Forward, template <class> class Backward>
class GpuActivation final : public Activation {
 public:
  GpuActivation(const ContextPtr& context, const TensorDesc& desc) : context_(context) {
    x = y = desc;
  }

  void forward(Tensor& y_out, const Tensor& x_in) override {
    with_type(view_of(y).type, [&](auto number) {
      using Value = decltype(number);
      for_each_group(*context_, "activation", y,
                     Forward<Value>{elements<Value>(y_out), elements<Value>(x_in)});
    });
  }
  void backward(Tensor& dx, const Tensor& dy, const Tensor& y_in) override {
    with_type(view_of(y).type, [&](auto number) {
      using Value = decltype(number);
      for_each_group(
          *context_, "gradient of an activation", y,
          Backward<Value>{elements<Value>(dx), elements<Value>(dy), elements<Value>(y_in)});
    });
  }

 private:
  ContextPtr context_;
};

}  // namespace

std::unique_ptr<Activation> make_activation(const ContextPtr& context, ActivationKind kind,
                                            const TensorDesc& x) {
  if (kind == ActivationKind::relu)
    return std::make_unique<GpuActivation<Relu, ReluBackward>>(context, x);
  return std::make_unique<GpuActivation<Sigmoid, SigmoidBackward>>(context, x);
}

}  // namespace duplex::cudnn
