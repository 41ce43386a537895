// Defines the convolution layer (2.7), with ReLU if asked.
#pragma once
#include "layers/kinds/geometry.h"
#include "layers/layer.h"

namespace duplex {

class ConvLayer : public Layer {
 public:
  struct Options {
    std::int64_t groups = 1;
    bool bias = true;
    bool relu = true;  ///< "Every convolution is followed by ReLU" (chapter 2).
  };

  ConvLayer(std::int64_t filters, Geometry geometry, Options options)
      : filters_(filters), geometry_(geometry), options_(options) {}

  std::int64_t filters() const { return filters_; }
  const Geometry& geometry_as_given() const { return geometry_; }
  const Options& options() const { return options_; }
  /// Returns the specification of the operation on inputs of this shape.
  ConvSpec spec(const Shape& x) const;

  std::string type() const override { return "conv"; }
  std::string geometry(const std::vector<Shape>& x) const override { return geometry_.str(x[0]); }
  LayerTraits traits() const override;
  Shape output(const std::vector<Shape>& x) const override;
  std::vector<ParameterSpec> parameters(const std::vector<Shape>& x) const override;
  std::optional<std::vector<Channels>> reads(const std::vector<Shape>& x,
                                             const Channels& y) const override;
  /// Throws Error unless the channels are whole groups, or lie in one.
  std::shared_ptr<const Layer> part(const Channels& y) const override;
  std::int64_t macs(const std::vector<Shape>& x) const override;
  std::optional<ConvSpec> convolution(const std::vector<Shape>& x) const override {
    return spec(x[0]);
  }
  std::unique_ptr<BoundLayer> bind(Device& device, const std::string& name,
                                   const std::vector<TensorDesc>& x,
                                   const BindContext& context) const override;

 private:
  std::int64_t filters_;
  Geometry geometry_;
  Options options_;
};

}  // namespace duplex
