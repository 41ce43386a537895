#include "layers/kinds/linear.h"

#include "layers/kinds/weighted.h"

namespace duplex {

LayerTraits LinearLayer::traits() const {
  LayerTraits traits;
  traits.relu = relu_;
  traits.backward_reads_x = true;
  return traits;
}

Shape LinearLayer::output(const std::vector<Shape>& x) const {
  return output_shape(LinearSpec{outputs_, true, relu_}, x[0]);
}

std::vector<ParameterSpec> LinearLayer::parameters(const std::vector<Shape>& x) const {
  const std::int64_t inputs = x[0].elements() / x[0].n();
  return {{"weight", {outputs_, inputs}, Initial::he(inputs, relu_), true},
          {"bias", {outputs_}, {}, true}};
}

std::optional<std::vector<Channels>> LinearLayer::reads(const std::vector<Shape>& x,
                                                        const Channels&) const {
  return {{{0, x[0].c()}}};
}

std::unique_ptr<BoundLayer> LinearLayer::bind(Device& device, const std::string&,
                                              const std::vector<TensorDesc>& x,
                                              const BindContext& context) const {
  LinearSpec wanted = spec();
  wanted.gradients = context.wanted;
  return std::make_unique<BoundWeighted<Linear>>(device.linear(wanted, x[0]), true);
}

}  // namespace duplex
