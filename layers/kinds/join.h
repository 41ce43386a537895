// Defines the layers that join branches: concatenation, addition, and the zero-padding of channels
// (Figure 2.12).
#pragma once
#include "layers/layer.h"

namespace duplex {

class ConcatLayer : public Layer {
 public:
  std::string type() const override { return "concat"; }
  LayerTraits traits() const override;
  Shape output(const std::vector<Shape>& x) const override;
  std::optional<std::vector<Channels>> reads(const std::vector<Shape>& x,
                                             const Channels& y) const override;
  std::unique_ptr<BoundLayer> bind(Device& device, const std::string& name,
                                   const std::vector<TensorDesc>& x,
                                   const BindContext& context) const override;
};

class AddLayer : public Layer {
 public:
  explicit AddLayer(bool relu) : relu_(relu) {}

  bool relu() const { return relu_; }
  std::string type() const override { return "add"; }
  LayerTraits traits() const override;
  Shape output(const std::vector<Shape>& x) const override;
  std::optional<std::vector<Channels>> reads(const std::vector<Shape>&,
                                             const Channels& y) const override {
    return {{y, y}};
  }
  std::unique_ptr<BoundLayer> bind(Device& device, const std::string& name,
                                   const std::vector<TensorDesc>& x,
                                   const BindContext& context) const override;

 private:
  bool relu_;
};

class PadChannelsLayer : public Layer {
 public:
  explicit PadChannelsLayer(std::int64_t channels) : channels_(channels) {}

  std::int64_t channels() const { return channels_; }
  std::string type() const override { return "pad channels"; }
  Shape output(const std::vector<Shape>& x) const override;
  std::optional<std::vector<Channels>> reads(const std::vector<Shape>& x,
                                             const Channels& y) const override;
  std::unique_ptr<BoundLayer> bind(Device& device, const std::string& name,
                                   const std::vector<TensorDesc>& x,
                                   const BindContext& context) const override;

 private:
  std::int64_t channels_;
};

}  // namespace duplex
