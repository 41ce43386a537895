#include "layers/conv.h"

#include "core/error.h"
#include "layers/weighted.h"

namespace duplex {

LayerTraits ConvLayer::traits() const {
  LayerTraits traits;
  traits.relu = options_.relu;
  traits.backward_reads_x = true;
  return traits;
}

Shape ConvLayer::output(const std::vector<Shape>& x) const {
  if (x[0].c() % options_.groups != 0 || filters_ % options_.groups != 0) {
    throw Error("convolution: " + std::to_string(options_.groups) +
                " groups divide neither all of " + std::to_string(x[0].c()) + " channels nor of " +
                std::to_string(filters_) + " filters");
  }
  const Window window = geometry_.window(x[0]);
  return {x[0].n(), filters_, window.output_height(x[0].h()), window.output_width(x[0].w())};
}

std::vector<ParameterSpec> ConvLayer::parameters(const std::vector<Shape>& x) const {
  const Window window = geometry_.window(x[0]);
  const Shape weight{filters_, x[0].c() / options_.groups, window.height, window.width};
  const std::int64_t fan_in = weight.elements() / filters_;
  std::vector<ParameterSpec> specs{{"weight", weight, Initial::he(fan_in, options_.relu), true}};
  if (options_.bias) specs.push_back({"bias", {filters_}, {}, true});
  return specs;
}

std::int64_t ConvLayer::macs(const std::vector<Shape>& x) const {
  const Window window = geometry_.window(x[0]);
  return output(x).elements() * (x[0].c() / options_.groups) * window.height * window.width;
}

std::unique_ptr<BoundLayer> ConvLayer::bind(Device& device, const std::string&,
                                            const std::vector<TensorDesc>& x,
                                            const std::vector<bool>&) const {
  const ConvSpec spec{filters_, geometry_.window(x[0].shape), options_.groups, options_.bias,
                      options_.relu};
  return std::make_unique<BoundWeighted<Conv>>(device.conv(spec, x[0]), options_.bias);
}

}  // namespace duplex
