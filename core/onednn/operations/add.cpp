#include "core/onednn/operations/add.h"

#include "core/error.h"
#include "core/onednn/kernels.h"
#include "core/onednn/layout.h"
#include "core/onednn/parallel.h"

namespace duplex::onednn {
namespace {

class OneDnnAdd final : public Add {
 public:
  OneDnnAdd(const ContextPtr& context, bool relu, const TensorDesc& a, const TensorDesc& b)
      : context_(context), relu_(relu) {
    if (a.shape != b.shape) {
      throw Error("addition: " + a.shape.str() + " and " + b.shape.str() + " differ");
    }
    x = y = a;
    b_in_ = Conversion(context, memory_of(b), memory_of(a), Context::slot_x);
  }

  void forward(Tensor& y_out, const Tensor& a_in, const Tensor& b_in) override {
    context_->enter();
    const float *a = a_in.data, *b = b_in_.input(b_in.data);
    float* to = y_out.data;
    const auto run = relu_ ? add_relu : onednn::add;
    parallel_elements(y_out.stored(), [=](std::int64_t begin, std::int64_t end) {
      run(to + begin, a + begin, b + begin, end - begin);
    });
  }

 private:
  ContextPtr context_;
  bool relu_;
  Conversion b_in_;
};

class OneDnnGradientSum final : public GradientSum {
 public:
  explicit OneDnnGradientSum(ContextPtr context) : context_(std::move(context)) {}

  void run(Tensor& out, const std::vector<Tensor>& inputs, const Tensor* y_in) override {
    if (inputs.empty()) throw Error("sum of gradients: no inputs");
    context_->enter();
    std::vector<const float*> data;
    for (const Tensor& input : inputs) data.push_back(input.data);
    const float* y = y_in == nullptr ? nullptr : y_in->data;
    parallel_elements(out.stored(), [&](std::int64_t begin, std::int64_t end) {
      sum_masked(out.data, data, y, begin, end);
    });
  }

 private:
  ContextPtr context_;
};

}  // namespace

std::unique_ptr<Add> make_add(const ContextPtr& context, bool relu, const TensorDesc& a,
                              const TensorDesc& b) {
  return std::make_unique<OneDnnAdd>(context, relu, a, b);
}

std::unique_ptr<GradientSum> make_gradient_sum(const ContextPtr& context, const TensorDesc&) {
  return std::make_unique<OneDnnGradientSum>(context);
}

}  // namespace duplex::onednn
