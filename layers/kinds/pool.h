// Defines max and average pooling.
#pragma once
#include "layers/kinds/geometry.h"
#include "layers/layer.h"

namespace duplex {

class PoolLayer : public Layer {
 public:
  PoolLayer(PoolKind kind, Geometry geometry) : kind_(kind), geometry_(geometry) {}

  const Geometry& geometry_as_given() const { return geometry_; }
  std::string type() const override { return kind_ == PoolKind::max ? "max pool" : "avg pool"; }
  std::string geometry(const std::vector<Shape>& x) const override { return geometry_.str(x[0]); }
  Shape output(const std::vector<Shape>& x) const override;
  std::optional<std::vector<Channels>> reads(const std::vector<Shape>&,
                                             const Channels& y) const override {
    return {{y}};
  }
  std::unique_ptr<BoundLayer> bind(Device& device, const std::string& name,
                                   const std::vector<TensorDesc>& x,
                                   const BindContext& context) const override;

 private:
  PoolKind kind_;
  Geometry geometry_;
};

}  // namespace duplex
