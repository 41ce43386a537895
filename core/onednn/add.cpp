#include "core/onednn/add.h"

#include <algorithm>
#include <array>

#include "core/error.h"
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
    parallel_elements(y_out.stored(), [=](std::int64_t begin, std::int64_t end) {
      if (relu_) {
        for (std::int64_t i = begin; i < end; ++i) to[i] = std::max(a[i] + b[i], 0.0F);
      } else {
        for (std::int64_t i = begin; i < end; ++i) to[i] = a[i] + b[i];
      }
    });
  }

 private:
  ContextPtr context_;
  bool relu_;
  Conversion b_in_;
};

/// to = (sum of from) * [y > 0], where there is a y.
template <std::size_t count>
void sum_masked(float* to, std::array<const float*, count> from, const float* y, std::int64_t begin,
                std::int64_t end) {
  const auto sum = [&](std::int64_t i) {
    float total = from[0][i];
    for (std::size_t k = 1; k < count; ++k) total += from[k][i];
    return total;
  };
  if (y == nullptr) {
    for (std::int64_t i = begin; i < end; ++i) to[i] = sum(i);
  } else {
    for (std::int64_t i = begin; i < end; ++i) {
      const float total = sum(i);
      to[i] = y[i] > 0.0F ? total : 0.0F;
    }
  }
}

class OneDnnGradientSum final : public GradientSum {
 public:
  explicit OneDnnGradientSum(ContextPtr context) : context_(std::move(context)) {}

  void run(Tensor& out, const std::vector<Tensor>& inputs, const Tensor* y_in) override {
    if (inputs.empty()) throw Error("sum of gradients: no inputs");
    context_->enter();
    const float* y = y_in == nullptr ? nullptr : y_in->data;
    float* to = out.data;
    const auto data = [&](std::size_t k) -> const float* { return inputs[k].data; };
    parallel_elements(out.stored(), [&](std::int64_t begin, std::int64_t end) {
      switch (inputs.size()) {
        case 1:
          return sum_masked<1>(to, {data(0)}, y, begin, end);
        case 2:
          return sum_masked<2>(to, {data(0), data(1)}, y, begin, end);
        case 3:
          return sum_masked<3>(to, {data(0), data(1), data(2)}, y, begin, end);
        case 4:
          return sum_masked<4>(to, {data(0), data(1), data(2), data(3)}, y, begin, end);
        default:
          for (std::int64_t i = begin; i < end; ++i) {
            float total = inputs[0].data[i];
            for (std::size_t k = 1; k < inputs.size(); ++k) total += inputs[k].data[i];
            to[i] = y == nullptr || y[i] > 0.0F ? total : 0.0F;
          }
      }
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
