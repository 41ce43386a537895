#include "core/cudnn/operations/conv.h"

#include <memory>
#include <string>
#include <utility>

#include "core/cudnn/kernels/kernels.h"
#include "core/cudnn/staging.h"
#include "core/error.h"

namespace duplex::cudnn {
namespace {

/// An engine for one direction of a convolution. If `framed`, it knows of no padding: it reads or
/// writes x in a frame of zeros.
struct Way {
  Runner runner;
  bool framed = false;
  Reservation workspace;

  explicit operator bool() const { return bool(runner); }
};

/// Returns the graph of a convolution's forward, with its bias and ReLU.
ConvGraph forward_graph(const Context& context, const ConvSpec& spec, const Shape& x) {
  const auto view = [&](const Shape& shape) {
    View it = view_of(desc_of(shape, context.order(), context.type()));
    it.order = context.order();
    return it;
  };
  return {Direction::forward,          spec.window, view(x),  view(weights_shape(spec, x)),
          view(output_shape(spec, x)), spec.bias,   spec.relu};
}

/// Returns the graph of a direction alone, without bias and ReLU.
ConvGraph bare_graph(ConvGraph graph, Direction direction) {
  graph.bias = graph.relu = false;
  graph.direction = direction;
  return graph;
}

/// Returns the graph without padding for x in a frame of zeros.
ConvGraph framed_graph(ConvGraph graph) {
  const Padding& padding = graph.window.padding;
  graph.x.h += static_cast<std::uint32_t>(padding.top + padding.bottom);
  graph.x.w += static_cast<std::uint32_t>(padding.left + padding.right);
  graph.window.padding = {};
  return graph;
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
    const TensorDesc read = desc_of(x.shape, order, type), cast = desc_of(filters, order, type);
    frame_ = desc_of(framed_shape(spec, x.shape), order, type);
    choose();
    if (spec.bias && !fused_)
      plans_->say_once(std::string("cuda: cuDNN has no engine in ") +
                       name_of(context_->precision()) +
                       (order == Order::nhwc ? ", NHWC," : ", NCHW,") +
                       " that adds the bias to some convolution; a separate pass adds it");
    Staging staging;
    // Nobody overwrites the network's images before their backward, since no gradient of them is
    // wanted: what forward has staged of them serves once more.
    keeps_x_ = spec.gradients == Gradients::weights && forward_.framed == by_weights_.framed &&
               (!bare_ || bare_.framed == forward_.framed);
    if (keeps_x_) {
      (forward_.framed ? framed_x_ : x_) = Staged(forward_.framed ? frame_ : read, x, *context_);
    } else {
      x_ = Staged(read, x, staging);
      if (!is_even(spec.window.padding)) framed_x_ = Staged(frame_, x, staging);
    }
    dweights_ = Staged(desc_of(filters, order, dweights_type_), weights, staging);
    const Staging others = staging;
    weights_ = Staged(cast, weights, staging);
    if (fused_) bias_ = Staged(desc_of(bias.shape, order, type), bias, staging);
    room_ = StagingRoom(*context_, staging, others);
    if (spec.bias) bias_workspace_ = context_->reserve(bias_workspace(*context_, y));
  }

  void forward(Tensor& y_out, const Tensor& x_in, const Tensor& w, const Tensor& b) override {
    const Context& context = *context_;
    room_.expect(*context_, w);
    const bool apart = fused_ && spec_.relu && context.keeps_nan() && bare_;
    Way& way = apart ? bare_ : forward_;
    ConvMemory memory{read_x(way, x_in), weights_.read_weights(context, w).data, y_out.data};
    if (fused_ && !apart) memory.bias = bias_.read_weights(context, b).data;
    way.runner.run(context, memory, context.workspace(), "convolution");
    if (!fused_ || apart) add_bias(context, y_out, b, spec_.relu);
  }

  void backward_data(Tensor& dx, const Tensor& dy, const Tensor& w) override {
    const Context& context = *context_;
    room_.expect(*context_, w);
    const Staged& staged = data_.framed ? framed_x_ : x_;
    data_.runner.run(
        context, {staged.room(context, dx).data, weights_.read_weights(context, w).data, dy.data},
        context.workspace(), "gradient of a convolution's input");
    staged.write(context, dx, data_.framed ? top() : 0, data_.framed ? left() : 0);
  }

  void backward_weights(Tensor& dw, Tensor& db, const Tensor& dy, const Tensor& x_in) override {
    const Context& context = *context_;
    float* const x_data = keeps_x_ ? (by_weights_.framed ? framed_x_ : x_).room(context, x_in).data
                                   : read_x(by_weights_, x_in);
    by_weights_.runner.run(context, {x_data, dweights_.room(context, dw).data, dy.data},
                           context.workspace(), "gradient of a convolution's weights");
    dweights_.write(context, dw);
    if (spec_.bias) bias_gradient(context, db, dy);
  }

 private:
  std::int32_t top() const { return static_cast<std::int32_t>(spec_.window.padding.top); }
  std::int32_t left() const { return static_cast<std::int32_t>(spec_.window.padding.left); }

  /// Returns x as the engine reads it.
  float* read_x(const Way& way, const Tensor& x_in) const {
    return way.framed ? framed_x_.read(*context_, x_in, top(), left()).data
                      : x_.read(*context_, x_in).data;
  }

  /// Chooses engines for the directions that are asked for. Throws Error where one has none.
  void choose() {
    const ConvGraph whole = forward_graph(*context_, spec_, x.shape);
    const ConvGraph bare = bare_graph(whole, Direction::forward);
    fused_ = spec_.bias;
    if (fused_) forward_ = fastest(whole);
    if (fused_ && forward_ && spec_.relu) bare_ = fastest(bare);
    if (!forward_) {
      fused_ = false;
      forward_ = fastest(bare);
    }
    if (spec_.gradients == Gradients::all) data_ = fastest(bare_graph(whole, Direction::data));
    if (spec_.gradients != Gradients::none) {
      // Engines that round their sums to 16 bits, as PyTorch's autocast does, are 1.5 to 50 times
      // as fast as those that write float32 (cuDNN 9.19 on an H200, batch 64).
      ConvGraph graph = bare_graph(whole, Direction::weights);
      dweights_type_ = context_->type();
      by_weights_ = fastest(graph);
      if (!by_weights_ && context_->type() != Type::float32) {
        graph.weights.type = dweights_type_ = Type::float32;
        by_weights_ = fastest(graph);
      }
    }
    if (!forward_ || (!data_ && spec_.gradients == Gradients::all) ||
        (!by_weights_ && spec_.gradients != Gradients::none))
      throw Error("cuda: cuDNN has no engine in " + name_of(context_->precision()) +
                  " for a convolution of " + x.shape.str() + " with weights of " +
                  weights.shape.str());
  }

  /// Returns the fastest way to compute a graph. Where padding differs on opposite sides, cuDNN may
  /// have only slow engines, or none that is right; one without padding may be faster, and the copy
  /// of x into a frame is cheap beside them.
  Way fastest(const ConvGraph& graph) {
    constexpr float cost_of_frame = 1.2F;
    const auto way = [&](std::shared_ptr<const Plan> plan, bool framed) {
      Reservation workspace = plan ? context_->reserve(plan->workspace()) : nullptr;
      return Way{Runner(std::move(plan)), framed, std::move(workspace)};
    };
    const auto direct = plans_->fastest(graph);
    if (is_even(spec_.window.padding)) return way(direct, false);
    const auto framed = plans_->fastest(framed_graph(graph));
    const bool faster =
        framed && (!direct || cost_of_frame * framed->milliseconds() < direct->milliseconds());
    return way(faster ? framed : direct, faster);
  }

  std::shared_ptr<Plans> plans_;
  ContextPtr context_;
  ConvSpec spec_;
  TensorDesc frame_;  ///< Of x with its padding.
  Staged x_, framed_x_, weights_, bias_, dweights_;
  StagingRoom room_;
  Reservation bias_workspace_;
  Type dweights_type_ = Type::float32;
  bool fused_ = false;
  bool keeps_x_ = false;  ///< backward_weights() finds x as the last forward staged it.
  Way forward_, data_, by_weights_;
  /// Forward without bias and ReLU, which run apart where NaN has to be kept. It is chosen with the
  /// others, since trying engines takes memory that a training has given away later.
  Way bare_;
};

}  // namespace

std::vector<ConvGraph> conv_graphs(const Context& context, const std::vector<ConvOn>& convs) {
  std::vector<ConvGraph> graphs;
  const auto add = [&](const ConvSpec& spec, const ConvGraph& graph) {
    graphs.push_back(graph);
    if (!is_even(spec.window.padding)) graphs.push_back(framed_graph(graph));
  };
  for (const auto& [spec, x] : convs) {
    try {
      const ConvGraph whole = forward_graph(context, spec, x);
      if (spec.bias) add(spec, whole);
      if (!spec.bias || spec.relu) add(spec, bare_graph(whole, Direction::forward));
      if (spec.gradients == Gradients::all) add(spec, bare_graph(whole, Direction::data));
      if (spec.gradients != Gradients::none) add(spec, bare_graph(whole, Direction::weights));
    } catch (const Error&) {  // make_conv() throws it again.
    }
  }
  return graphs;
}

std::unique_ptr<Conv> make_conv(const std::shared_ptr<Plans>& plans, const ConvSpec& spec,
                                const TensorDesc& x) {
  return std::make_unique<GpuConv>(plans, spec, x);
}

}  // namespace duplex::cudnn
