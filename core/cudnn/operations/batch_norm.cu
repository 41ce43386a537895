// Batch normalisation uses our own kernels: cuDNN fuses ReLU for half precision alone, and an
// unfused ReLU costs two more passes over the activations.
#include "core/cudnn/operations/batch_norm.h"

#include <type_traits>
#include <utility>

#include "core/cudnn/kernels/statistics.h"
#include "core/cudnn/kernels/summed_gradients.h"
#include "core/cudnn/kernels/sums.h"
#include "core/cudnn/layout.h"
#include "core/cudnn/operations/gradient_sum.h"

namespace duplex::cudnn {
namespace {

class GpuBatchNorm final : public BatchNorm {
 public:
  GpuBatchNorm(const ContextPtr& context, const BatchNormSpec& spec, const TensorDesc& desc)
      : context_(context), spec_(spec) {
    x = y = desc;
    const View view = view_of(x);
    memory_ = context->allocate(4 * view.c * sizeof(float));
    auto* first = static_cast<float*>(memory_.data());
    moments_ = {first, first + view.c, first + 2 * view.c, first + 3 * view.c};
    workspace_ = context->reserve(sums_workspace(*context, view));
  }

  bool adds() const override { return !spec_.relu; }

  void forward_training(Tensor& y_out, Tensor& running_mean, Tensor& running_var,
                        const Tensor& x_in, const Tensor& gamma, const Tensor& beta,
                        const Addend& added) override {
    const View view = view_of(x);
    dy_summed_ = nullptr;
    with_type(view.type, [&](auto number) {
      using Value = decltype(number);
      const Value* from = elements<Value>(x_in);
      sum_channels(*context_, "statistics of batch normalisation",
                   BatchSums<Value>{view, from, moments_, running_mean.data, running_var.data,
                                    gamma.data, beta.data, spec_.epsilon, spec_.momentum});
      for_each_group(*context_, "batch normalisation", y,
                     Normalise<Value>{view, moments_, elements<Value>(y_out), from,
                                      spec_.relu || added.relu, other<Value>(added)});
    });
  }

  void forward_inference(Tensor& y_out, const Tensor& x_in, const Tensor& gamma, const Tensor& beta,
                         const Tensor& running_mean, const Tensor& running_var,
                         const Addend& added) override {
    const View view = view_of(x);
    with_type(view.type, [&](auto number) {
      using Value = decltype(number);
      for_each_group(
          *context_, "batch normalisation", y,
          NormaliseFixed<Value>{view, elements<Value>(y_out), elements<Value>(x_in), gamma.data,
                                beta.data, running_mean.data, running_var.data, spec_.epsilon,
                                spec_.relu || added.relu, other<Value>(added)});
    });
  }

  void backward_sum(Tensor& dy, Tensor& dgamma, Tensor& dbeta, const std::vector<Tensor>& inputs,
                    const Tensor* y_in, const Tensor& x_in) override {
    with_type(view_of(x).type, [&](auto number) {
      using Value = decltype(number);
      const auto sums = gradient_sums<Value>(dy, dgamma, dbeta, x_in);
      with_masked_sum<Value>(*context_, list_, dy, inputs, y_in, [&](const auto& sum) {
        using Inputs = std::decay_t<decltype(sum.inputs)>;
        sum_channels(*context_, "sum of gradients",
                     SummedGradients<Value, Inputs>{view_of(x), sum, sums});
      });
    });
    dy_summed_ = dy.data;
  }

  void backward(Tensor& dx, Tensor& dgamma, Tensor& dbeta, const Tensor& dy, const Tensor& x_in,
                const Tensor&) override {
    const View view = view_of(x);
    const double count = static_cast<double>(view.n) * view.map();
    const bool summed = std::exchange(dy_summed_, nullptr) == dy.data;
    with_type(view.type, [&](auto number) {
      using Value = decltype(number);
      const auto sums = gradient_sums<Value>(dy, dgamma, dbeta, x_in);
      if (!summed) sum_channels(*context_, "gradients of batch normalisation", sums);
      for_each_group(
          *context_, "gradient of batch normalisation", x,
          NormaliseBackward<Value>{sums, elements<Value>(dx), static_cast<float>(1.0 / count)});
    });
  }

 private:
  template <class Value>
  GradientSums<Value> gradient_sums(const Tensor& dy, const Tensor& dgamma, const Tensor& dbeta,
                                    const Tensor& x_in) const {
    return {view_of(x), moments_,    elements<Value>(dy), elements<Value>(x_in),
            spec_.relu, dgamma.data, dbeta.data};
  }
  template <class Value>
  static const Value* other(const Addend& added) {
    return added.tensor == nullptr ? nullptr : elements<Value>(*added.tensor);
  }

  ContextPtr context_;
  Reservation workspace_;
  BatchNormSpec spec_;
  Buffer memory_;
  AddressList list_;
  Moments moments_;                   ///< Statistics of the last forward_training.
  const float* dy_summed_ = nullptr;  ///< The dy of which the next backward() finds the sums.
};

}  // namespace

std::unique_ptr<BatchNorm> make_batch_norm(const ContextPtr& context, const BatchNormSpec& spec,
                                           const TensorDesc& x) {
  return std::make_unique<GpuBatchNorm>(context, spec, x);
}

}  // namespace duplex::cudnn
