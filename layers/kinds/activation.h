// Defines the element-wise layers: ReLU (2.3) and sigmoid (2.4), for where no layer before applies
// them itself, and dropout.
#pragma once
#include "layers/layer.h"

namespace duplex {

class ActivationLayer : public Layer {
 public:
  explicit ActivationLayer(ActivationKind kind) : kind_(kind) {}

  std::string type() const override { return kind_ == ActivationKind::relu ? "relu" : "sigmoid"; }
  LayerTraits traits() const override;
  Shape output(const std::vector<Shape>& x) const override { return x[0]; }
  std::optional<std::vector<Channels>> reads(const std::vector<Shape>&,
                                             const Channels& y) const override {
    return {{y}};
  }
  std::unique_ptr<BoundLayer> bind(Device& device, const std::string& name,
                                   const std::vector<TensorDesc>& x,
                                   const BindContext& context) const override;

 private:
  ActivationKind kind_;
};

/// Applies dropout in training, and passes x on otherwise.
class DropoutLayer : public Layer {
 public:
  explicit DropoutLayer(float rate) : rate_(rate) {}

  float rate() const { return rate_; }
  std::string type() const override { return "dropout"; }
  std::string geometry(const std::vector<Shape>&) const override;
  LayerTraits traits() const override;
  Shape output(const std::vector<Shape>& x) const override { return x[0]; }
  std::optional<std::vector<Channels>> reads(const std::vector<Shape>&,
                                             const Channels& y) const override {
    return {{y}};
  }
  std::unique_ptr<BoundLayer> bind(Device& device, const std::string& name,
                                   const std::vector<TensorDesc>& x,
                                   const BindContext& context) const override;

 private:
  float rate_;
};

}  // namespace duplex
