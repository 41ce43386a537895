#include "layers/exchange/local_exchange.h"

#include "layers/checkpoint.h"

namespace duplex {

LocalExchange::LocalExchange(Network& network, const OptimiserSpec& optimiser,
                             const LearningRate& rate, Updates updates)
    : network_(network), rate_(rate), updates_(updates) {
  step_.spec = optimiser;
  if (optimiser.clip_norm > 0.0F && updates == Updates::each)
    throw Error("gradients are clipped by their norm only where all weights are updated together");
  Device& device = network.device();
  const TensorDesc& desc = network.weights().desc;
  for (int i = 0; i < optimiser.states() && !network.parameters().empty(); ++i) {
    memory_.push_back(network.allocate(desc.bytes));
    state_.push_back({desc, static_cast<float*>(memory_.back().data())});
    device.fill(state_.back(), 0.0F);
  }
}

void LocalExchange::begin(std::uint64_t step) {
  step_.rate = rate_.at(step);
  step_.number = step + 1;
  pushed_ = 0;
}

void LocalExchange::push(std::size_t parameter) {
  const Parameter& p = network_.parameters()[parameter];
  ++pushed_;
  if (updates_ == Updates::each) {
    update(p.weights, p.gradient);
  } else if (pushed_ == network_.parameters().size()) {
    if (step_.spec.clip_norm > 0.0F) step_.scale = scale(network_.gradients());
    update(network_.weights(), network_.gradients());
  }
}

/// The factor that clips the gradients of all parameters by their norm.
float LocalExchange::scale(const Tensor& gradients) {
  const auto count = static_cast<std::size_t>(gradients.desc.shape.elements());
  Device& device = network_.device();
  if (!device.asynchronous()) return clip_scale(step_.spec.clip_norm, gradients.data, count);
  host_.resize(count);
  network_.named({}, [&] { device.download(host_.data(), gradients); });
  return clip_scale(step_.spec.clip_norm, host_.data(), count);
}

Tensor LocalExchange::state_for(const Tensor& weights, const Tensor& all) const {
  return {weights.desc, all.data + (weights.data - network_.weights().data)};
}

std::vector<StateArray> LocalExchange::state() {
  std::vector<StateArray> arrays;
  const std::vector<std::string> names = step_.spec.state_names();
  for (std::size_t i = 0; i < state_.size(); ++i) {
    for (const Parameter& parameter : network_.parameters()) {
      Tensor tensor = state_for(parameter.weights, state_[i]);
      Device& device = network_.device();
      arrays.push_back(
          {optimiser_prefix + names[i] + "." + parameter.name, parameter.spec.shape,
           [&device, tensor](float* to) { device.download(to, tensor); },
           [&device, tensor](const float* from) mutable { device.upload(tensor, from); }});
    }
  }
  return arrays;
}

void LocalExchange::update(Tensor weights, const Tensor& gradient) {
  std::vector<Tensor> state;
  for (const Tensor& all : state_) state.push_back(state_for(weights, all));
  network_.named({}, [&] { network_.device().update(step_, weights, gradient, state); });
}

}  // namespace duplex
