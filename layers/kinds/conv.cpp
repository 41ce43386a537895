#include "layers/kinds/conv.h"

#include "core/error.h"
#include "layers/kinds/weighted.h"

namespace duplex {

LayerTraits ConvLayer::traits() const {
  LayerTraits traits;
  traits.relu = options_.relu;
  traits.backward_reads_x = true;
  return traits;
}

ConvSpec ConvLayer::spec(const Shape& x) const {
  return {filters_, geometry_.window(x), options_.groups, options_.bias, options_.relu};
}

Shape ConvLayer::output(const std::vector<Shape>& x) const {
  return output_shape(spec(x[0]), x[0]);
}

std::vector<ParameterSpec> ConvLayer::parameters(const std::vector<Shape>& x) const {
  const Shape weight = weights_shape(spec(x[0]), x[0]);
  const std::int64_t fan_in = weight.elements() / filters_;
  std::vector<ParameterSpec> specs{{"weight", weight, Initial::he(fan_in, options_.relu), true}};
  if (options_.bias) specs.push_back({"bias", {filters_}, {}, true});
  return specs;
}

std::optional<std::vector<Channels>> ConvLayer::reads(const std::vector<Shape>& x,
                                                      const Channels& y) const {
  const std::int64_t filters = filters_ / options_.groups, inputs = x[0].c() / options_.groups;
  const std::int64_t first = y.first / filters, last = (y.end - 1) / filters;
  return {{{first * inputs, (last + 1) * inputs}}};
}

std::shared_ptr<const Layer> ConvLayer::part(const Channels& y) const {
  const std::int64_t filters = filters_ / options_.groups;
  const bool whole_groups = y.first % filters == 0 && y.end % filters == 0;
  if (!whole_groups && y.first / filters != (y.end - 1) / filters)
    throw Error("filters " + std::to_string(y.first) + " to " + std::to_string(y.end - 1) +
                " are no whole groups of " + std::to_string(filters));
  Options options = options_;
  options.groups = whole_groups ? y.count() / filters : 1;
  return std::make_shared<ConvLayer>(y.count(), geometry_, options);
}

std::int64_t ConvLayer::macs(const std::vector<Shape>& x) const {
  const Shape weight = weights_shape(spec(x[0]), x[0]);
  return output(x).elements() * weight.c() * weight.h() * weight.w();
}

std::unique_ptr<BoundLayer> ConvLayer::bind(Device& device, const std::string&,
                                            const std::vector<TensorDesc>& x,
                                            const BindContext& context) const {
  ConvSpec wanted = spec(x[0].shape);
  wanted.gradients = context.wanted;
  return std::make_unique<BoundWeighted<Conv>>(device.conv(wanted, x[0]), options_.bias);
}

}  // namespace duplex
