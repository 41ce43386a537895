// Convolutions and linear layers share this: three primitives over x, weights and y, the choice of
// their layouts, and the conversions where a primitive wants another layout than the tensor has.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "core/onednn/compat.h"
#include "core/onednn/context.h"
#include "core/onednn/kernels.h"
#include "core/onednn/layout.h"

namespace duplex::onednn {

/// Returns the post-op of a ReLU that is fused with a primitive.
inline dnnl::post_ops relu_after() {
  dnnl::post_ops ops;
  append_relu(ops);
  return ops;
}

/// Layouts of the three tensors of an operation with weights, and of their gradients.
struct Layouts {
  dnnl::memory::desc x, weights, y;
};

/// Returns the first description of the fastest kind of implementation (implementation_rank())
/// among `candidates`. `describe` makes a primitive description of one, empty if there is none.
/// List the candidate that needs the fewest conversions first.
template <class Describe>
auto choose(const std::vector<Layouts>& candidates, const Describe& describe) {
  decltype(describe(candidates[0])) best;
  for (const Layouts& layouts : candidates) {
    auto description = describe(layouts);
    if (!description) continue;
    const int rank = implementation_rank(description.impl_info_str());
    if (!best || rank < implementation_rank(best.impl_info_str())) best = description;
    if (rank == 0) break;
  }
  if (!best) throw dnnl::error(dnnl_unimplemented, "no implementation for these extents");
  return best;
}

/// Interface is Conv or Linear. Primitives describes oneDNN's: types Forward, BackwardData,
/// BackwardWeights, and functions forward(layouts, attributes), backward_data(layouts, hint),
/// backward_weights(layouts, hint) that return descriptions; choose_forward(), which settles the
/// layouts of weights and y; `x`, the layout of x, and `x_wanted`, the one to ask for first; `any`,
/// the layouts that leave the choice to oneDNN; `bias` and `relu`, whether there is a bias and a
/// ReLU; `gradients`, those that backward is asked for; `attributes`, those of a primitive that
/// nothing is fused with.
template <class Interface, class Primitives>
class Weighted final : public Interface {
 public:
  /// `what` names the operation in errors.
  Weighted(ContextPtr context, Primitives primitives, std::string what, const TensorDesc& x_desc,
           const Shape& weights_shape, const Shape& y_shape)
      : context_(std::move(context)),
        primitives_(std::move(primitives)),
        what_(std::move(what)),
        has_{primitives_.x, {}, {}} {
    context_->enter();
    hint_ = primitives_.choose_forward();
    has_.weights = hint_.weights_desc();
    has_.y = hint_.dst_desc();
    this->x = x_desc;
    this->weights = tensor_of(weights_shape, has_.weights);
    this->bias = primitives_.bias ? plain_desc({y_shape.c()}) : TensorDesc{};
    this->y = tensor_of(y_shape, has_.y);
    forward_x_ = Conversion(context_, has_.x, hint_.src_desc(), Context::slot_x);
    forward_ = bound_forward(hint_);
    if (primitives_.relu) prepare_linear();
    if (primitives_.gradients != Gradients::none) prepare_backward_weights();
    if (primitives_.gradients == Gradients::all) prepare_backward_data();
  }

  void forward(Tensor& y_out, const Tensor& x_in, const Tensor& weights_in,
               const Tensor& bias_in) override {
    const bool relu_apart = primitives_.relu && context_->keeps_nan();
    (relu_apart ? linear_ : forward_)
        .run({{DNNL_ARG_SRC, forward_x_.input(x_in.data)},
              {DNNL_ARG_WEIGHTS, weights_in.data},
              {DNNL_ARG_BIAS, bias_in.data},
              {DNNL_ARG_DST, y_out.data}});
    if (relu_apart) relu_in_place(y_out);
  }

  void backward_data(Tensor& dx, const Tensor& dy, const Tensor& weights_in) override {
    data_.run({{DNNL_ARG_DIFF_DST, data_y_.input(dy.data)},
               {DNNL_ARG_WEIGHTS, data_weights_.input(weights_in.data)},
               {DNNL_ARG_DIFF_SRC, data_x_.target(dx.data)}});
    data_x_.finish(dx.data);
  }

  void backward_weights(Tensor& dweights, Tensor& dbias, const Tensor& dy,
                        const Tensor& x_in) override {
    weights_.run({{DNNL_ARG_DIFF_DST, weights_y_.input(dy.data)},
                  {DNNL_ARG_SRC, weights_x_.input(x_in.data)},
                  {DNNL_ARG_DIFF_WEIGHTS, weights_weights_.target(dweights.data)},
                  {DNNL_ARG_DIFF_BIAS, dbias.data}});
    weights_weights_.finish(dweights.data);
  }

 private:
  std::vector<Layouts> backward_candidates() const {
    const dnnl::memory::desc &x = primitives_.x_wanted, &any_weights = primitives_.any.weights;
    return {{x, has_.weights, has_.y}, {x, any_weights, has_.y}, primitives_.any};
  }

  BoundPrimitive bound_forward(const typename Primitives::Forward::primitive_desc& description) {
    return BoundPrimitive(context_, what_ + ", forward", description,
                          typename Primitives::Forward(description),
                          {{DNNL_ARG_SRC, description.src_desc()},
                           {DNNL_ARG_WEIGHTS, description.weights_desc()},
                           {DNNL_ARG_BIAS, description.bias_desc()},
                           {DNNL_ARG_DST, description.dst_desc()}});
  }

  /// Makes linear_, which is forward_ without the ReLU, over the same layouts.
  void prepare_linear() {
    const auto description = primitives_.forward(
        {hint_.src_desc(), hint_.weights_desc(), hint_.dst_desc()}, primitives_.attributes);
    if (!description) throw dnnl::error(dnnl_unimplemented, "no implementation without ReLU");
    linear_ = bound_forward(description);
  }

  void prepare_backward_data() {
    const auto description = choose(backward_candidates(), [&](const Layouts& layouts) {
      return primitives_.backward_data(layouts, hint_);
    });
    data_y_ = Conversion(context_, has_.y, description.diff_dst_desc(), Context::slot_y);
    data_weights_ =
        Conversion(context_, has_.weights, description.weights_desc(), Context::slot_weights);
    data_x_ = Conversion(context_, description.diff_src_desc(), has_.x, Context::slot_x);
    data_ = BoundPrimitive(context_, what_ + ", backward by x", description,
                           typename Primitives::BackwardData(description),
                           {{DNNL_ARG_DIFF_DST, description.diff_dst_desc()},
                            {DNNL_ARG_WEIGHTS, description.weights_desc()},
                            {DNNL_ARG_DIFF_SRC, description.diff_src_desc()}});
  }

  void prepare_backward_weights() {
    const auto description = choose(backward_candidates(), [&](const Layouts& layouts) {
      return primitives_.backward_weights(layouts, hint_);
    });
    weights_y_ = Conversion(context_, has_.y, description.diff_dst_desc(), Context::slot_y);
    weights_x_ = Conversion(context_, has_.x, description.src_desc(), Context::slot_x);
    weights_weights_ =
        Conversion(context_, description.diff_weights_desc(), has_.weights, Context::slot_weights);
    weights_ = BoundPrimitive(context_, what_ + ", backward by weights", description,
                              typename Primitives::BackwardWeights(description),
                              {{DNNL_ARG_DIFF_DST, description.diff_dst_desc()},
                               {DNNL_ARG_SRC, description.src_desc()},
                               {DNNL_ARG_DIFF_WEIGHTS, description.diff_weights_desc()},
                               {DNNL_ARG_DIFF_BIAS, description.diff_bias_desc()}});
  }

  ContextPtr context_;
  Primitives primitives_;
  std::string what_;
  Layouts has_;  ///< Layouts of the tensors that this operation is given.
  typename Primitives::Forward::primitive_desc hint_;
  BoundPrimitive forward_, data_, weights_;
  BoundPrimitive linear_;  ///< forward_ without its ReLU, for keep_nan.
  Conversion forward_x_;
  Conversion data_y_, data_weights_, data_x_;
  Conversion weights_y_, weights_x_, weights_weights_;
};

}  // namespace duplex::onednn
