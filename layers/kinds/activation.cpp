#include "layers/kinds/activation.h"

#include <cmath>

namespace duplex {
namespace {

class BoundActivation : public BoundLayer {
 public:
  explicit BoundActivation(std::unique_ptr<Activation> activation)
      : activation_(std::move(activation)) {
    y = activation_->y;
  }

  void forward(Tensor& y, const std::vector<Tensor>& x, std::vector<Tensor>&,
               const ForwardContext&) override {
    activation_->forward(y, x[0]);
  }
  void backward(std::vector<Tensor>& dx, std::vector<Tensor>&, const Tensor& dy,
                const std::vector<Tensor>&, const Tensor& y, const std::vector<Tensor>&) override {
    if (dx[0]) activation_->backward(dx[0], dy, y);
  }

 private:
  std::unique_ptr<Activation> activation_;
};

class BoundDropout : public BoundLayer {
 public:
  /// `draw` has the stream, and the elements of a sample.
  BoundDropout(std::unique_ptr<Dropout> dropout, std::unique_ptr<GradientSum> copy,
               const DropoutDraw& draw, std::int64_t first_sample)
      : dropout_(std::move(dropout)),
        copy_(std::move(copy)),
        draw_(draw),
        first_sample_(static_cast<std::uint64_t>(first_sample)) {
    y = dropout_->y;
  }

  void prepare(const ForwardContext& context) override {
    if (context.training) dropout_->prepare(draw_of(context));
  }
  void forward(Tensor& y, const std::vector<Tensor>& x, std::vector<Tensor>&,
               const ForwardContext& context) override {
    if (context.training) {
      dropout_->forward(y, x[0], draw_of(context));
    } else {
      copy_->run(y, {x[0]}, nullptr);
    }
  }
  void backward(std::vector<Tensor>& dx, std::vector<Tensor>&, const Tensor& dy,
                const std::vector<Tensor>&, const Tensor&, const std::vector<Tensor>&) override {
    if (dx[0]) dropout_->backward(dx[0], dy);
  }

 private:
  DropoutDraw draw_of(const ForwardContext& context) const {
    DropoutDraw draw = draw_;
    draw.seed = context.seed;
    draw.first_sample = context.first_sample + first_sample_;
    return draw;
  }

  std::unique_ptr<Dropout> dropout_;
  std::unique_ptr<GradientSum> copy_;
  DropoutDraw draw_;
  std::uint64_t first_sample_;  ///< Of its own samples, in the batch.
};

}  // namespace

LayerTraits ActivationLayer::traits() const {
  LayerTraits traits;
  traits.backward_reads_y = true;
  traits.gradient_in_place = true;
  return traits;
}

std::unique_ptr<BoundLayer> ActivationLayer::bind(Device& device, const std::string&,
                                                  const std::vector<TensorDesc>& x,
                                                  const BindContext&) const {
  return std::make_unique<BoundActivation>(device.activation(kind_, x[0]));
}

std::string DropoutLayer::geometry(const std::vector<Shape>&) const {
  return std::to_string(std::lround(rate_ * 100.0F)) + "%";
}

LayerTraits DropoutLayer::traits() const {
  LayerTraits traits;
  traits.gradient_in_place = true;
  return traits;
}

std::unique_ptr<BoundLayer> DropoutLayer::bind(Device& device, const std::string& name,
                                               const std::vector<TensorDesc>& x,
                                               const BindContext& context) const {
  DropoutDraw draw;
  draw.stream = stream_of(context.part.layer.empty() ? name : context.part.layer);
  const auto map = static_cast<std::uint64_t>(x[0].shape.h() * x[0].shape.w());
  draw.first_element = static_cast<std::uint64_t>(context.part.first_channel) * map;
  draw.sample_elements = static_cast<std::uint64_t>(context.part.all_channels) * map;
  return std::make_unique<BoundDropout>(device.dropout(rate_, x[0]), device.gradient_sum(x[0]),
                                        draw, context.part.first_sample);
}

}  // namespace duplex
