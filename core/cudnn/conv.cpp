#include "core/cudnn/conv.h"

#include "core/cudnn/kernels.h"
#include "core/cudnn/layout.h"
#include "core/error.h"

namespace duplex::cudnn {
namespace {

using PlanPtr = std::shared_ptr<const Plan>;

bool is_even(const Padding& padding) {
  return padding.top == padding.bottom && padding.left == padding.right;
}

class GpuConv final : public Conv {
 public:
  GpuConv(const std::shared_ptr<Plans>& plans, const ConvSpec& spec, const TensorDesc& desc)
      : plans_(plans), context_(plans->context()), spec_(spec) {
    const Order order = context_->order();
    x = desc;
    weights = desc_of(weights_shape(spec, x.shape), order);
    if (spec.bias) bias = plain_desc({spec.filters});
    y = desc_of(output_shape(spec, x.shape), order);
    read_ = desc_of(x.shape, order);
    if (!choose(spec.window)) frame();
    if (!same_storage(read_, x)) staging_ = context_->allocate(read_.bytes);
    if (spec.bias) context_->reserve(bias_workspace(*context_, y));
  }

  void forward(Tensor& y_out, const Tensor& x_in, const Tensor& w, const Tensor& b) override {
    ConvMemory memory{as_read(x_in).data, w.data, y_out.data};
    if (fused_) memory.bias = b.data;
    forward_->run(*context_, memory, "convolution");
    if (fused_) return;
    if (spec_.bias) {
      add_bias(*context_, y_out, b, spec_.relu);
    } else if (spec_.relu) {
      rectify(*context_, y_out);
    }
  }

  void backward_data(Tensor& dx, const Tensor& dy, const Tensor& w) override {
    Tensor read = staging_.data() == nullptr ? dx : staging();
    data_->run(*context_, {read.data, w.data, dy.data}, "gradient of a convolution's input");
    if (staging_.data() != nullptr) move_map(*context_, dx, read, -shift_y(), -shift_x());
  }

  void backward_weights(Tensor& dw, Tensor& db, const Tensor& dy, const Tensor& x_in) override {
    weights_->run(*context_, {as_read(x_in).data, dw.data, dy.data},
                  "gradient of a convolution's weights");
    if (spec_.bias) bias_gradient(*context_, db, dy);
  }

 private:
  /// Plans for the three directions with a window over `read_`. False: one has none.
  bool choose(const Window& window) {
    ConvGraph graph{Direction::forward, window,     view_of(read_), view_of(weights),
                    view_of(y),         spec_.bias, spec_.relu};
    for (View* view : {&graph.x, &graph.weights, &graph.y}) view->order = context_->order();
    fused_ = spec_.bias;
    forward_ = fused_ ? plans_->fastest(graph) : nullptr;
    graph.bias = graph.relu = false;
    if (!forward_) {
      fused_ = false;
      forward_ = plans_->fastest(graph);
    }
    graph.direction = Direction::data;
    data_ = plans_->fastest(graph);
    graph.direction = Direction::weights;
    weights_ = plans_->fastest(graph);
    return forward_ && data_ && weights_;
  }

  /// No engine takes this padding where it differs on opposite sides: x is copied into a frame of
  /// zeros.
  void frame() {
    const Padding& padding = spec_.window.padding;
    const Shape framed{x.shape.n(), x.shape.c(), x.shape.h() + padding.top + padding.bottom,
                       x.shape.w() + padding.left + padding.right};
    read_ = desc_of(framed, context_->order());
    framed_ = true;
    Window window = spec_.window;
    window.padding = {};
    if (is_even(padding) || !choose(window))
      throw Error("cuda: cuDNN has no engine in float32 for a convolution of " + x.shape.str() +
                  " with weights of " + weights.shape.str());
  }

  std::int32_t shift_y() const {
    return framed_ ? static_cast<std::int32_t>(spec_.window.padding.top) : 0;
  }
  std::int32_t shift_x() const {
    return framed_ ? static_cast<std::int32_t>(spec_.window.padding.left) : 0;
  }

  Tensor staging() const { return {read_, static_cast<float*>(staging_.data())}; }

  /// x in the layout, and the frame, that the engines read.
  Tensor as_read(const Tensor& x_in) const {
    if (staging_.data() == nullptr) return x_in;
    Tensor read = staging();
    move_map(*context_, read, x_in, shift_y(), shift_x());
    return read;
  }

  std::shared_ptr<Plans> plans_;
  ContextPtr context_;
  ConvSpec spec_;
  TensorDesc read_;  ///< What the engines read in the place of x.
  bool framed_ = false, fused_ = false;
  PlanPtr forward_, data_, weights_;
  Buffer staging_;  ///< Where read_ is not x.
};

}  // namespace

std::unique_ptr<Conv> make_conv(const std::shared_ptr<Plans>& plans, const ConvSpec& spec,
                                const TensorDesc& x) {
  return std::make_unique<GpuConv>(plans, spec, x);
}

}  // namespace duplex::cudnn
