// Addition of two tensors, and the sum of gradients, in plain loops.
#include "core/reference/add.h"

#include <algorithm>

#include "core/error.h"

namespace duplex::reference {
namespace {

class ReferenceAdd : public Add {
 public:
  ReferenceAdd(bool relu, const TensorDesc& a, const TensorDesc& b) : relu_(relu) {
    if (a.shape != b.shape) {
      throw Error("addition: " + a.shape.str() + " and " + b.shape.str() + " differ");
    }
    x = y = a;
  }

  void forward(Tensor& y_out, const Tensor& a, const Tensor& b) override {
    for (std::int64_t i = 0; i < y_out.stored(); ++i) {
      const float sum = a.data[i] + b.data[i];
      y_out.data[i] = relu_ ? std::max(sum, 0.0F) : sum;
    }
  }

 private:
  bool relu_;
};

class ReferenceGradientSum : public GradientSum {
 public:
  void run(Tensor& out, const std::vector<Tensor>& inputs, const Tensor* y) override {
    for (std::int64_t i = 0; i < out.stored(); ++i) {
      float sum = 0.0F;
      for (const Tensor& input : inputs) sum += input.data[i];
      out.data[i] = y == nullptr || y->data[i] > 0.0F ? sum : 0.0F;
    }
  }
};

}  // namespace

std::unique_ptr<Add> make_add(bool relu, const TensorDesc& a, const TensorDesc& b) {
  return std::make_unique<ReferenceAdd>(relu, a, b);
}

std::unique_ptr<GradientSum> make_gradient_sum(const TensorDesc&) {
  return std::make_unique<ReferenceGradientSum>();
}

}  // namespace duplex::reference
