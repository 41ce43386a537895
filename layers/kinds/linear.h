// Defines the linear layer (2.2), with ReLU if asked.
#pragma once
#include "layers/layer.h"

namespace duplex {

class LinearLayer : public Layer {
 public:
  LinearLayer(std::int64_t outputs, bool relu) : outputs_(outputs), relu_(relu) {}

  LinearSpec spec() const { return {outputs_, true, relu_}; }

  std::string type() const override { return "linear"; }
  LayerTraits traits() const override;
  Shape output(const std::vector<Shape>& x) const override;
  std::vector<ParameterSpec> parameters(const std::vector<Shape>& x) const override;
  std::optional<std::vector<Channels>> reads(const std::vector<Shape>& x,
                                             const Channels& y) const override;
  std::shared_ptr<const Layer> part(const Channels& y) const override {
    return std::make_shared<LinearLayer>(y.count(), relu_);
  }
  std::int64_t macs(const std::vector<Shape>& x) const override {
    return x[0].elements() * outputs_;
  }
  std::unique_ptr<BoundLayer> bind(Device& device, const std::string& name,
                                   const std::vector<TensorDesc>& x,
                                   const BindContext& context) const override;

 private:
  std::int64_t outputs_;
  bool relu_;
};

}  // namespace duplex
