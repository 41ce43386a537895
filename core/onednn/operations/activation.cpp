#include "core/onednn/operations/activation.h"

#include "core/onednn/compat.h"
#include "core/onednn/kernels.h"
#include "core/onednn/layout.h"
#include "core/onednn/parallel.h"

namespace duplex::onednn {
namespace {

class Relu final : public Activation {
 public:
  Relu(ContextPtr context, const TensorDesc& desc) : context_(std::move(context)) { x = y = desc; }

  // ReLU (2.3).
  void forward(Tensor& y_out, const Tensor& x_in) override {
    context_->enter();
    parallel_elements(y_out.stored(), [&](std::int64_t begin, std::int64_t end) {
      relu(y_out.data + begin, x_in.data + begin, end - begin);
    });
  }

  // The gradient of ReLU (3.6): y is above zero exactly where x is.
  void backward(Tensor& dx, const Tensor& dy, const Tensor& y_in) override {
    context_->enter();
    parallel_elements(dx.stored(), [&](std::int64_t begin, std::int64_t end) {
      mask(dx.data + begin, dy.data + begin, y_in.data + begin, end - begin);
    });
  }

 private:
  ContextPtr context_;
};

class Sigmoid final : public Activation {
 public:
  Sigmoid(const ContextPtr& context, const std::string& what, const TensorDesc& desc)
      : context_(context) {
    x = y = desc;
    context->enter();
    const dnnl::memory::desc memory = memory_of(desc);
    const auto description = describe_logistic(context->engine(), context->attributes(), memory);
    if (!description) throw dnnl::error(dnnl_unimplemented, "no implementation for these extents");
    forward_ = BoundPrimitive(context, what, description, dnnl::eltwise_forward(description),
                              {{DNNL_ARG_SRC, memory}, {DNNL_ARG_DST, memory}});
  }

  // Sigmoid (2.4).
  void forward(Tensor& y_out, const Tensor& x_in) override {
    forward_.run({{DNNL_ARG_SRC, x_in.data}, {DNNL_ARG_DST, y_out.data}});
  }

  // The gradient of sigmoid (3.7).
  void backward(Tensor& dx, const Tensor& dy, const Tensor& y_in) override {
    context_->enter();
    parallel_elements(dx.stored(), [&](std::int64_t begin, std::int64_t end) {
      sigmoid_backward(dx.data + begin, dy.data + begin, y_in.data + begin, end - begin);
    });
  }

 private:
  ContextPtr context_;
  BoundPrimitive forward_;
};

}  // namespace

std::unique_ptr<Activation> make_activation(const ContextPtr& context, ActivationKind kind,
                                            const TensorDesc& x) {
  if (kind == ActivationKind::relu) return std::make_unique<Relu>(context, x);
  const std::string what = "sigmoid of " + x.shape.str();
  return translate(what, [&] { return std::make_unique<Sigmoid>(context, what, x); });
}

}  // namespace duplex::onednn
