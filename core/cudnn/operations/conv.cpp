#include "core/cudnn/operations/conv.h"

#include "core/cudnn/kernels/kernels.h"
#include "core/cudnn/staging.h"
#include "core/error.h"

namespace duplex::cudnn {
namespace {

bool is_even(const Padding& padding) {
  return padding.top == padding.bottom && padding.left == padding.right;
}

/// Engines read and write x, weights and y in the context's order and type. Callers keep weights in
/// float32, and may have x in another order or type; such tensors are staged.
class GpuConv final : public Conv {
 public:
  GpuConv(const std::shared_ptr<Plans>& plans, const ConvSpec& spec, const TensorDesc& desc)
      : plans_(plans), context_(plans->context()), spec_(spec) {
    const Order order = context_->order();
    const Type type = context_->type();
    const Shape filters = weights_shape(spec, desc.shape);
    x = desc;
    weights = desc_of(filters, order);
    if (spec.bias) bias = plain_desc({spec.filters});
    y = desc_of(output_shape(spec, x.shape), order, type);
    TensorDesc read = desc_of(x.shape, order, type);
    const TensorDesc cast = desc_of(filters, order, type);
    if (!choose(spec.window, read, cast)) {
      read = framed(order, type);
      Window window = spec.window;
      window.padding = {};
      if (is_even(spec.window.padding) || !choose(window, read, cast))
        throw Error("cuda: cuDNN has no engine in " + name_of(context_->precision()) +
                    " for a convolution of " + x.shape.str() + " with weights of " + filters.str());
      plans_->say_once(
          "cuda: cuDNN has no engine for convolutions whose padding differs on opposite "
          "sides; their inputs are copied into frames of zeros");
      down_ = static_cast<std::int32_t>(spec.window.padding.top);
      right_ = static_cast<std::int32_t>(spec.window.padding.left);
    }
    if (spec.bias && !fused_)
      plans_->say_once(std::string("cuda: cuDNN has no engine in ") +
                       name_of(context_->precision()) +
                       (order == Order::nhwc ? ", NHWC," : ", NCHW,") +
                       " that adds the bias to some convolution; a separate pass adds it");
    Staging staging;
    x_ = Staged(read, x, staging);
    weights_ = Staged(cast, weights, staging);
    dweights_ = Staged(desc_of(filters, order, dweights_type_), weights, staging);
    if (fused_) bias_ = Staged(desc_of(bias.shape, order, type), bias, staging);
    staging.reserve(*context_);
    if (spec.bias) context_->reserve(bias_workspace(*context_, y));
  }

  void forward(Tensor& y_out, const Tensor& x_in, const Tensor& w, const Tensor& b) override {
    const Context& context = *context_;
    ConvMemory memory{x_.read(context, x_in, down_, right_).data, weights_.read(context, w).data,
                      y_out.data};
    const bool apart = fused_ && spec_.relu && context.keeps_nan() && find_bare();
    if (fused_ && !apart) memory.bias = bias_.read(context, b).data;
    (apart ? bare_ : forward_).run(context, memory, context.workspace(), "convolution");
    if (!fused_ || apart) add_bias(context, y_out, b, spec_.relu);
  }

  void backward_data(Tensor& dx, const Tensor& dy, const Tensor& w) override {
    const Context& context = *context_;
    data_.run(context, {x_.room(context, dx).data, weights_.read(context, w).data, dy.data},
              context.workspace(), "gradient of a convolution's input");
    x_.write(context, dx, down_, right_);
  }

  void backward_weights(Tensor& dw, Tensor& db, const Tensor& dy, const Tensor& x_in) override {
    const Context& context = *context_;
    by_weights_.run(
        context,
        {x_.read(context, x_in, down_, right_).data, dweights_.room(context, dw).data, dy.data},
        context.workspace(), "gradient of a convolution's weights");
    dweights_.write(context, dw);
    if (spec_.bias) bias_gradient(context, db, dy);
  }

 private:
  /// Makes plans for the directions that are asked for, with a window over an x of the description
  /// `read`. Returns false where a direction has no engine.
  bool choose(const Window& window, const TensorDesc& read, const TensorDesc& cast) {
    ConvGraph graph{Direction::forward, window,     view_of(read), view_of(cast),
                    view_of(y),         spec_.bias, spec_.relu};
    for (View* view : {&graph.x, &graph.weights, &graph.y}) view->order = context_->order();
    fused_ = spec_.bias;
    forward_ = Runner(fused_ ? plans_->fastest(graph) : nullptr);
    graph.bias = graph.relu = false;
    bare_graph_ = graph;
    if (!forward_) {
      fused_ = false;
      forward_ = Runner(plans_->fastest(graph));
    }
    if (spec_.gradients == Gradients::all) {
      graph.direction = Direction::data;
      data_ = Runner(plans_->fastest(graph));
    }
    if (spec_.gradients == Gradients::none) return bool(forward_);
    graph.direction = Direction::weights;
    graph.weights.type = dweights_type_ = Type::float32;
    by_weights_ = Runner(plans_->fastest(graph));
    if (!by_weights_ && context_->type() != Type::float32) {
      graph.weights.type = dweights_type_ = context_->type();
      by_weights_ = Runner(plans_->fastest(graph));
    }
    return forward_ && (data_ || spec_.gradients != Gradients::all) && by_weights_;
  }

  /// Returns whether there is an engine for the convolution without bias and ReLU, and looks for it
  /// when it is first needed.
  bool find_bare() {
    if (!bare_) bare_ = Runner(plans_->fastest(bare_graph_));
    return bool(bare_);
  }

  /// Returns the description of x in a frame of zeros. x is copied into one where no engine takes
  /// padding that differs on opposite sides.
  TensorDesc framed(Order order, Type type) const {
    const Padding& padding = spec_.window.padding;
    return desc_of({x.shape.n(), x.shape.c(), x.shape.h() + padding.top + padding.bottom,
                    x.shape.w() + padding.left + padding.right},
                   order, type);
  }

  std::shared_ptr<Plans> plans_;
  ContextPtr context_;
  ConvSpec spec_;
  Staged x_, weights_, bias_, dweights_;
  Type dweights_type_ = Type::float32;
  std::int32_t down_ = 0, right_ = 0;  ///< Where x begins in its frame.
  bool fused_ = false;
  Runner forward_, data_, by_weights_;
  ConvGraph bare_graph_;  ///< forward_'s graph without bias and ReLU.
  Runner bare_;
};

}  // namespace

std::unique_ptr<Conv> make_conv(const std::shared_ptr<Plans>& plans, const ConvSpec& spec,
                                const TensorDesc& x) {
  return std::make_unique<GpuConv>(plans, spec, x);
}

}  // namespace duplex::cudnn
