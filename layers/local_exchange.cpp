#include "layers/local_exchange.h"

namespace duplex {

LocalExchange::LocalExchange(Network& network, const OptimiserSpec& optimiser,
                             const LearningRate& rate)
    : network_(network), rate_(rate) {
  step_.spec = optimiser;
  Device& device = network.device();
  for (const Parameter& parameter : network.parameters()) {
    std::vector<Tensor> tensors;
    for (int i = 0; i < optimiser.states(); ++i) {
      memory_.push_back(device.allocate(parameter.weights.desc.bytes));
      tensors.push_back({parameter.weights.desc, static_cast<float*>(memory_.back().data())});
      device.fill(tensors.back(), 0.0F);
    }
    state_.push_back(std::move(tensors));
  }
}

void LocalExchange::begin(std::uint64_t step) {
  step_.rate = rate_.at(step);
  step_.number = step + 1;
}

void LocalExchange::push(std::size_t parameter) {
  Parameter& p = network_.parameters()[parameter];
  network_.device().update(step_, p.weights, p.gradient, state_[parameter]);
}

}  // namespace duplex
