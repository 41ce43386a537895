// Defines local response normalisation (2.8) and batch normalisation (2.9)-(2.12).
#pragma once
#include "layers/layer.h"

namespace duplex {

class LrnLayer : public Layer {
 public:
  explicit LrnLayer(LrnSpec spec) : spec_(spec) {}

  const LrnSpec& spec() const { return spec_; }
  std::string type() const override { return "lrn"; }
  LayerTraits traits() const override;
  Shape output(const std::vector<Shape>& x) const override { return x[0]; }
  std::optional<std::vector<Channels>> reads(const std::vector<Shape>& x,
                                             const Channels& y) const override;
  std::unique_ptr<BoundLayer> bind(Device& device, const std::string& name,
                                   const std::vector<TensorDesc>& x,
                                   const BindContext& context) const override;

 private:
  LrnSpec spec_;
};

/// Trains weight (gamma) and bias (beta), and keeps the state running_mean and running_var.
class BatchNormLayer : public Layer {
 public:
  explicit BatchNormLayer(BatchNormSpec spec) : spec_(spec) {}

  const BatchNormSpec& spec() const { return spec_; }
  std::string type() const override { return "batch norm"; }
  LayerTraits traits() const override;
  Shape output(const std::vector<Shape>& x) const override { return x[0]; }
  std::optional<std::vector<Channels>> reads(const std::vector<Shape>&,
                                             const Channels& y) const override {
    return {{y}};
  }
  std::vector<ParameterSpec> parameters(const std::vector<Shape>& x) const override;
  std::unique_ptr<BoundLayer> bind(Device& device, const std::string& name,
                                   const std::vector<TensorDesc>& x,
                                   const BindContext& context) const override;

 private:
  BatchNormSpec spec_;
};

}  // namespace duplex
