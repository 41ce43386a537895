#include "core/onednn/operations/lrn.h"

#include "core/error.h"
#include "core/onednn/compat.h"
#include "core/onednn/layout.h"

namespace duplex::onednn {
namespace {

class OneDnnLrn final : public Lrn {
 public:
  OneDnnLrn(const ContextPtr& context, const std::string& what, const LrnSpec& spec,
            const TensorDesc& x_desc)
      : context_(context), spec_(spec) {
    if (spec.size < 1 || spec.size % 2 == 0) throw Error("LRN: the size must be odd");
    context->enter();
    const dnnl::memory::desc given = memory_of(x_desc);
    const auto forward_pd = choose_forward(given);
    const dnnl::memory::desc memory = forward_pd.src_desc();
    const auto backward_pd =
        describe_lrn_backward(context->engine(), context->attributes(), forward_pd, memory,
                              spec.size, spec.alpha, spec.beta, spec.k);
    if (!backward_pd) throw dnnl::error(dnnl_unimplemented, "no backward for these extents");
    x = x_desc;
    y = tensor_of(x.shape, memory);
    workspace_ = KeptMemory(context, forward_pd.workspace_desc().get_size());
    x_in_ = Conversion(context, given, memory, Context::slot_x);
    dx_out_ = Conversion(context, memory, given, Context::slot_y);
    forward_ =
        BoundPrimitive(context, what + ", forward", forward_pd, dnnl::lrn_forward(forward_pd),
                       {{DNNL_ARG_SRC, memory},
                        {DNNL_ARG_DST, memory},
                        {DNNL_ARG_WORKSPACE, forward_pd.workspace_desc()}});
    backward_ =
        BoundPrimitive(context, what + ", backward", backward_pd, dnnl::lrn_backward(backward_pd),
                       {{DNNL_ARG_SRC, memory},
                        {DNNL_ARG_DIFF_DST, memory},
                        {DNNL_ARG_DIFF_SRC, memory},
                        {DNNL_ARG_WORKSPACE, forward_pd.workspace_desc()}});
  }

  void forward(Tensor& y_out, const Tensor& x_in) override {
    forward_.run({{DNNL_ARG_SRC, x_in_.input(x_in.data)},
                  {DNNL_ARG_DST, y_out.data},
                  {DNNL_ARG_WORKSPACE, workspace_.data()}});
  }

  void backward(Tensor& dx, const Tensor& dy, const Tensor& x_in) override {
    backward_.run({{DNNL_ARG_SRC, x_in_.input(x_in.data)},
                   {DNNL_ARG_DIFF_DST, dy.data},
                   {DNNL_ARG_DIFF_SRC, dx_out_.target(dx.data)},
                   {DNNL_ARG_WORKSPACE, workspace_.data()}});
    dx_out_.finish(dx.data);
  }

 private:
  static constexpr int unusable = 3;

  /// Chooses the layout of x, or the first blocked one that has a faster kind of implementation.
  dnnl::lrn_forward::primitive_desc choose_forward(const dnnl::memory::desc& given) const {
    auto best = describe_forward(given);
    using Tag = dnnl::memory::format_tag;
    for (const Tag tag : {Tag::nChw16c, Tag::nChw8c}) {
      if (rank(best) == 0) break;
      auto blocked = describe_forward({dims_of(given), dnnl::memory::data_type::f32, tag});
      if (rank(blocked) < rank(best)) best = blocked;
    }
    if (rank(best) == unusable) {
      throw dnnl::error(dnnl_unimplemented, "no implementation for these extents");
    }
    return best;
  }

  /// Returns implementation_rank(), or `unusable`. A window of one channel has no neighbours, but
  /// oneDNN's kernel for AVX-512 and NHWC looks at the first one, and crashes when its backward is
  /// made (2.6.3 and 3.7.2; since 3.0 one channel in NCHW counts as NHWC too). The plain loop takes
  /// such windows, in another layout if it must be.
  int rank(const dnnl::lrn_forward::primitive_desc& description) const {
    if (!description) return unusable;
    const int rank = implementation_rank(description.impl_info_str());
    return spec_.size == 1 && rank == 0 ? unusable : rank;
  }

  dnnl::lrn_forward::primitive_desc describe_forward(const dnnl::memory::desc& memory) const {
    return describe_lrn(context_->engine(), context_->attributes(), memory, spec_.size, spec_.alpha,
                        spec_.beta, spec_.k);
  }

  ContextPtr context_;
  LrnSpec spec_;
  BoundPrimitive forward_, backward_;
  Conversion x_in_, dx_out_;
  KeptMemory workspace_;
};

}  // namespace

std::unique_ptr<Lrn> make_lrn(const ContextPtr& context, const LrnSpec& spec, const TensorDesc& x) {
  const std::string what = "LRN of " + x.shape.str();
  return translate(what, [&] { return std::make_unique<OneDnnLrn>(context, what, spec, x); });
}

}  // namespace duplex::onednn
