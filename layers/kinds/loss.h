// Defines the losses at a network's end: softmax (2.13) with cross-entropy, and squared error
// (3.1).
#pragma once
#include "layers/layer.h"

namespace duplex {

class LossLayer : public Layer {
 public:
  LossLayer(LossKind kind, float weight) : kind_(kind), weight_(weight) {}

  std::string type() const override {
    return kind_ == LossKind::softmax_cross_entropy ? "softmax" : "squared error";
  }
  LayerTraits traits() const override;
  Shape output(const std::vector<Shape>& x) const override;
  std::optional<LossKind> loss_kind() const override { return kind_; }
  float loss_weight() const override { return weight_; }
  std::unique_ptr<BoundLayer> bind(Device& device, const std::string& name,
                                   const std::vector<TensorDesc>& x,
                                   const BindContext& context) const override;

 private:
  LossKind kind_;
  float weight_;
};

}  // namespace duplex
