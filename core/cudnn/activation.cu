#include "core/cudnn/activation.h"

#include "core/cudnn/elements.h"
#include "core/cudnn/launch.h"

namespace duplex::cudnn {
namespace {

template <class Forward, class Backward>
class GpuActivation final : public Activation {
 public:
  GpuActivation(const ContextPtr& context, const TensorDesc& desc) : context_(context) {
    x = y = desc;
  }

  void forward(Tensor& y_out, const Tensor& x_in) override {
    for_each(*context_, "activation", y_out.stored(), Forward{y_out.data, x_in.data});
  }
  void backward(Tensor& dx, const Tensor& dy, const Tensor& y_in) override {
    for_each(*context_, "gradient of an activation", dx.stored(),
             Backward{dx.data, dy.data, y_in.data});
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
