#include "core/onednn/operations/batch_norm.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "core/onednn/compat.h"
#include "core/onednn/kernels.h"
#include "core/onednn/layout.h"

namespace duplex::onednn {
namespace {

class OneDnnBatchNorm final : public BatchNorm {
 public:
  OneDnnBatchNorm(const ContextPtr& context, const std::string& what, const BatchNormSpec& spec,
                  const TensorDesc& x_desc)
      : context_(context), what_(what), spec_(spec), memory_(memory_of(x_desc)) {
    x = y = x_desc;
    context->enter();
    const auto forward_pd = describe_batch_norm(context->engine(), context->attributes(),
                                                dnnl::prop_kind::forward_training, memory_,
                                                spec.epsilon, flags(spec.relu));
    if (!forward_pd) throw dnnl::error(dnnl_unimplemented, "no implementation for these extents");
    const auto backward_pd =
        describe_batch_norm_backward(context->engine(), context->attributes(), forward_pd, memory_,
                                     spec.epsilon, flags(spec.relu));
    if (!backward_pd) throw dnnl::error(dnnl_unimplemented, "no backward for these extents");
    mean_.resize(static_cast<std::size_t>(x.shape.c()));
    variance_.resize(mean_.size());
    if (scale_and_shift_are_one) rows_.resize(2 * mean_.size());
    const dnnl::memory::desc channels = plain_memory({x.shape.c()});
    const dnnl::memory::desc scale = scale_memory(), shift = shift_memory();
    workspace_ = KeptMemory(context, forward_pd.workspace_desc().get_size());
    training_ = BoundPrimitive(context, what + ", forward", forward_pd,
                               dnnl::batch_normalization_forward(forward_pd),
                               {{DNNL_ARG_SRC, memory_},
                                {DNNL_ARG_DST, memory_},
                                {arg_scale, scale},
                                {arg_shift, shift},
                                {DNNL_ARG_MEAN, channels},
                                {DNNL_ARG_VARIANCE, channels},
                                {DNNL_ARG_WORKSPACE, forward_pd.workspace_desc()}});
    backward_ = BoundPrimitive(context, what + ", backward", backward_pd,
                               dnnl::batch_normalization_backward(backward_pd),
                               {{DNNL_ARG_SRC, memory_},
                                {DNNL_ARG_DIFF_DST, memory_},
                                {DNNL_ARG_DIFF_SRC, memory_},
                                {arg_scale, scale},
                                {arg_shift, batch_norm_backward_shift(shift)},
                                {arg_diff_scale, scale},
                                {arg_diff_shift, shift},
                                {DNNL_ARG_MEAN, channels},
                                {DNNL_ARG_VARIANCE, channels},
                                {DNNL_ARG_WORKSPACE, forward_pd.workspace_desc()}});
  }

  void forward_training(Tensor& y_out, Tensor& running_mean, Tensor& running_var,
                        const Tensor& x_in, const Tensor& gamma, const Tensor& beta,
                        const Addend&) override {
    training_.run({{DNNL_ARG_SRC, x_in.data},
                   {DNNL_ARG_DST, y_out.data},
                   {arg_scale, scale_data(gamma, beta)},
                   {arg_shift, beta.data},
                   {DNNL_ARG_MEAN, mean_.data()},
                   {DNNL_ARG_VARIANCE, variance_.data()},
                   {DNNL_ARG_WORKSPACE, workspace_.data()}});
    if (spec_.relu && context_->keeps_nan()) spread_nan(y_out, gamma, beta);
    const auto count = static_cast<float>(x.shape.n() * x.shape.h() * x.shape.w());
    const float unbiased = count > 1.0F ? count / (count - 1.0F) : 1.0F;
    for (std::size_t c = 0; c < mean_.size(); ++c) {
      const auto blend = [&](float& running, float batch) {
        running = (1.0F - spec_.momentum) * running + spec_.momentum * batch;
      };
      blend(running_mean.data[c], mean_[c]);
      blend(running_var.data[c], variance_[c] * unbiased);
    }
  }

  void forward_inference(Tensor& y_out, const Tensor& x_in, const Tensor& gamma, const Tensor& beta,
                         const Tensor& running_mean, const Tensor& running_var,
                         const Addend&) override {
    const bool relu_apart = spec_.relu && context_->keeps_nan();
    BoundPrimitive& run = relu_apart ? linear_inference_ : inference_;
    if (!run) {
      translate(what_ + ", inference", [&] { run = make_inference(spec_.relu && !relu_apart); });
    }
    run.run({{DNNL_ARG_SRC, x_in.data},
             {DNNL_ARG_DST, y_out.data},
             {arg_scale, scale_data(gamma, beta)},
             {arg_shift, beta.data},
             {DNNL_ARG_MEAN, running_mean.data},
             {DNNL_ARG_VARIANCE, running_var.data}});
    if (relu_apart) relu_in_place(y_out);
  }

  void backward(Tensor& dx, Tensor& dgamma, Tensor& dbeta, const Tensor& dy, const Tensor& x_in,
                const Tensor& gamma) override {
    std::vector<float> diff_rows(rows_.size());
    backward_.run({{DNNL_ARG_SRC, x_in.data},
                   {DNNL_ARG_DIFF_DST, dy.data},
                   {DNNL_ARG_DIFF_SRC, dx.data},
                   {arg_scale, scale_data(gamma, gamma)},  // Any shift will do.
                   {arg_shift, gamma.data},
                   {arg_diff_scale, scale_and_shift_are_one ? diff_rows.data() : dgamma.data},
                   {arg_diff_shift, dbeta.data},
                   {DNNL_ARG_MEAN, mean_.data()},
                   {DNNL_ARG_VARIANCE, variance_.data()},
                   {DNNL_ARG_WORKSPACE, workspace_.data()}});
    if (!scale_and_shift_are_one) return;
    const std::size_t channels = mean_.size();
    std::copy_n(diff_rows.data(), channels, dgamma.data);
    std::copy_n(diff_rows.data() + channels, channels, dbeta.data);
  }

 private:
  static dnnl::normalization_flags flags(bool relu) {
    return relu ? scale_and_shift() | dnnl::normalization_flags::fuse_norm_relu : scale_and_shift();
  }

  dnnl::memory::desc scale_memory() const {
    return plain_memory(scale_and_shift_are_one ? dnnl::memory::dims{2, x.shape.c()}
                                                : dnnl::memory::dims{x.shape.c()});
  }
  dnnl::memory::desc shift_memory() const {
    return scale_and_shift_are_one ? dnnl::memory::desc() : plain_memory({x.shape.c()});
  }
  /// Returns the scale in the form of scale_memory(), with the shift behind it where oneDNN wants
  /// both in one tensor.
  const float* scale_data(const Tensor& gamma, const Tensor& beta) {
    if (!scale_and_shift_are_one) return gamma.data;
    std::copy_n(gamma.data, mean_.size(), rows_.data());
    std::copy_n(beta.data, mean_.size(), rows_.data() + mean_.size());
    return rows_.data();
  }

  BoundPrimitive make_inference(bool relu) const {
    context_->enter();
    const auto description = describe_batch_norm(
        context_->engine(), context_->attributes(), dnnl::prop_kind::forward_inference, memory_,
        spec_.epsilon, flags(relu) | dnnl::normalization_flags::use_global_stats);
    if (!description) throw dnnl::error(dnnl_unimplemented, "no implementation for these extents");
    const dnnl::memory::desc channels = plain_memory({x.shape.c()});
    return BoundPrimitive(context_, what_ + ", inference", description,
                          dnnl::batch_normalization_forward(description),
                          {{DNNL_ARG_SRC, memory_},
                           {DNNL_ARG_DST, memory_},
                           {arg_scale, scale_memory()},
                           {arg_shift, shift_memory()},
                           {DNNL_ARG_MEAN, channels},
                           {DNNL_ARG_VARIANCE, channels}});
  }

  /// Puts NaN back, which the fused ReLU has turned into 0. One NaN in a channel of the batch makes
  /// its statistics, and so all of its y, NaN.
  void spread_nan(Tensor& y_out, const Tensor& gamma, const Tensor& beta) const {
    const ChannelBlocks place = channel_blocks(y);
    for (std::int64_t c = 0; c < place.channels; ++c) {
      const auto i = static_cast<std::size_t>(c);
      const float all = mean_[i] + variance_[i] + gamma.data[c] + beta.data[c];
      if (std::isfinite(all)) continue;
      for (std::int64_t n = 0; n < place.images; ++n) {
        float* to = y_out.data + place.offset(n, c);
        for (std::int64_t p = 0; p < place.pixels; ++p) {
          to[p * place.block] = std::numeric_limits<float>::quiet_NaN();
        }
      }
    }
  }

  ContextPtr context_;
  std::string what_;
  BatchNormSpec spec_;
  dnnl::memory::desc memory_;
  BoundPrimitive training_, inference_, backward_;
  BoundPrimitive linear_inference_;     ///< inference_ without the ReLU.
  std::vector<float> mean_, variance_;  ///< The last batch's; the variance is biased (2.10).
  std::vector<float> rows_;             ///< gamma, then beta; empty where oneDNN takes them apart.
  KeptMemory workspace_;                ///< ReLU's mask of the last batch.
};

}  // namespace

std::unique_ptr<BatchNorm> make_batch_norm(const ContextPtr& context, const BatchNormSpec& spec,
                                           const TensorDesc& x) {
  const std::string what = "batch normalisation of " + x.shape.str();
  return translate(what, [&] { return std::make_unique<OneDnnBatchNorm>(context, what, spec, x); });
}

}  // namespace duplex::onednn
