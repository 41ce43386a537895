#include "layers/exchange/local_exchange.h"

namespace duplex {

LocalExchange::LocalExchange(Network& network, const OptimiserSpec& optimiser,
                             const LearningRate& rate, Updates updates)
    : network_(network), rate_(rate), updates_(updates) {
  step_.spec = optimiser;
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
    update(network_.weights(), network_.gradients());
  }
}

void LocalExchange::update(Tensor weights, const Tensor& gradient) {
  const std::ptrdiff_t offset = weights.data - network_.weights().data;
  std::vector<Tensor> state;
  for (const Tensor& all : state_) state.push_back({weights.desc, all.data + offset});
  network_.named({}, [&] { network_.device().update(step_, weights, gradient, state); });
}

}  // namespace duplex
