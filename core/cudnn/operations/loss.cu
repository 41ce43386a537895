#include "core/cudnn/operations/loss.h"

#include <algorithm>

#include "core/cudnn/kernels/elements.h"
#include "core/cudnn/kernels/kernels.h"
#include "core/cudnn/kernels/launch.h"
#include "core/cudnn/kernels/updates.h"
#include "core/error.h"

namespace duplex::cudnn {
namespace {

class GpuLoss : public Loss {
 public:
  GpuLoss(const ContextPtr& context, const LossSpec& spec, const TensorDesc& desc)
      : context_(context), spec_(spec) {
    if (desc.shape.rank() < 2 || desc.shape.h() != 1 || desc.shape.w() != 1)
      throw Error("loss: the input is " + desc.shape.str() + ", not N x classes");
    x = desc;
    y = plain_desc(desc.shape);
    if (!x.plain()) staging_ = context->reserve_staging(y.bytes);
    const auto samples = static_cast<std::size_t>(x.shape.n());
    losses_ = context->allocate(samples * sizeof(float));
    labels_ = context->allocate(samples * sizeof(std::int32_t));
    given_ = context->pinned(labels_.bytes());
    taken_ = context->pinned(losses_.bytes());
  }

  void prepare(const std::int32_t* given) override {
    context_->enter();
    take_labels(given);
  }

  double value() override {
    context_->copy_out(taken_.data(), losses_.data(), losses_.bytes());
    const auto* taken = static_cast<const float*>(taken_.data());
    double sum = 0.0;
    for (std::int64_t n = 0; n < x.shape.n(); ++n) sum += static_cast<double>(taken[n]);
    return sum / static_cast<double>(x.shape.n());
  }

  void backward(Tensor& dx, const Tensor& y_in, float weight) override {
    if (!labelled_) throw Error("loss: backward before a forward with labels");
    with_type(view_of(x).type, [&](auto number) {
      using Value = decltype(number);
      for_each(*context_, "gradient of the loss", x,
               LossBackward<Value>{elements<Value>(dx), y_in.data, labels(), classes(),
                                   weight / static_cast<float>(x.shape.n()), spec_.on(x.shape.c()),
                                   spec_.off(x.shape.c())});
    });
  }

 protected:
  void take_labels(const std::int32_t* given) {
    if (context_->capturing()) return;  // prepare() has taken them.
    for (std::int64_t n = 0; n < x.shape.n(); ++n) {
      if (given[n] >= 0 && given[n] < x.shape.c()) continue;
      throw Error("loss: sample " + std::to_string(n) + " has label " + std::to_string(given[n]) +
                  ", but there are " + std::to_string(x.shape.c()) + " classes");
    }
    // The caller may have its memory back when this returns, and the GPU reads later.
    if (read_) wait_for(read_.get(), "waiting for labels");
    std::copy_n(given, x.shape.n(), static_cast<std::int32_t*>(given_.data()));
    context_->start_copy_in(labels_.data(), given_.data(), labels_.bytes());
    read_ = context_->events().recorded(context_->stream());
    labelled_ = true;
  }
  /// Returns x as plain float32.
  const float* plain(const Tensor& x_in) const {
    if (x.plain()) return x_in.data;
    Tensor staged{y, reinterpret_cast<float*>(context_->staging())};
    convert(*context_, staged, x_in);
    return staged.data;
  }
  std::uint32_t classes() const { return static_cast<std::uint32_t>(x.shape.c()); }
  float* losses() const { return static_cast<float*>(losses_.data()); }
  const std::int32_t* labels() const { return static_cast<const std::int32_t*>(labels_.data()); }

  ContextPtr context_;
  const LossSpec spec_;
  Reservation staging_;

 private:
  Buffer losses_, labels_;  ///< By sample, of the last forward that had labels.
  Buffer taken_, given_;    ///< The same in pinned host memory.
  Event read_;              ///< Recorded behind the copy of given_.
  bool labelled_ = false;
};

class CrossEntropyLoss final : public GpuLoss {
 public:
  CrossEntropyLoss(const ContextPtr& context, const LossSpec& spec, const TensorDesc& desc)
      : GpuLoss(context, spec, desc), logarithm_(context->allocate(y.bytes)) {
    cudnnTensorDescriptor_t made = nullptr;
    check(cudnnCreateTensorDescriptor(&made), "describing a softmax");
    shape_.reset(made);
    check(cudnnSetTensor4dDescriptor(made, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT,
                                     static_cast<int>(x.shape.n()), static_cast<int>(x.shape.c()),
                                     1, 1),
          "describing a softmax");
  }

  void forward(Tensor& y_out, const Tensor& x_in, const std::int32_t* given) override {
    context_->enter();
    if (given != nullptr) take_labels(given);
    const float one = 1.0F, zero = 0.0F;
    check(cudnnSoftmaxForward(context_->dnn(), CUDNN_SOFTMAX_LOG, CUDNN_SOFTMAX_MODE_INSTANCE, &one,
                              shape_.get(), plain(x_in), &zero, shape_.get(), logarithm()),
          "softmax");
    for_each(*context_, "softmax", y, Exponential{y_out.data, logarithm()});
    if (given != nullptr)
      for_each(*context_, "cross entropy", x.shape.n(),
               CrossEntropy{losses(), logarithm(), labels(), classes(), spec_.smoothing});
  }

 private:
  float* logarithm() const { return static_cast<float*>(logarithm_.data()); }

  Handle<cudnnTensorDescriptor_t> shape_;
  Buffer logarithm_;  ///< The logarithm of y.
};

class SquaredErrorLoss final : public GpuLoss {
 public:
  using GpuLoss::GpuLoss;

  void forward(Tensor& y_out, const Tensor& x_in, const std::int32_t* given) override {
    context_->enter();
    if (given != nullptr) take_labels(given);
    convert(*context_, y_out, x_in);
    if (given != nullptr)
      for_each(*context_, "squared error", x.shape.n(),
               SquaredError{losses(), y_out.data, labels(), classes(), spec_.on(x.shape.c()),
                            spec_.off(x.shape.c())});
  }
};

}  // namespace

std::unique_ptr<Loss> make_loss(const ContextPtr& context, const LossSpec& spec,
                                const TensorDesc& x) {
  if (spec.kind == LossKind::softmax_cross_entropy)
    return std::make_unique<CrossEntropyLoss>(context, spec, x);
  return std::make_unique<SquaredErrorLoss>(context, spec, x);
}

}  // namespace duplex::cudnn
