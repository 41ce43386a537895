// The exchange of a machine that trains alone: a pushed gradient updates the weights in place.
#pragma once
#include <vector>

#include "core/exchange.h"
#include "core/optimiser.h"
#include "layers/network.h"

namespace duplex {

class LocalExchange final : public Exchange {
 public:
  /// The optimiser's state lives on the network's device, in the layout of the weights.
  LocalExchange(Network& network, const OptimiserSpec& optimiser, const LearningRate& rate);

  void begin(std::uint64_t step) override;
  void await(std::size_t) override {}
  void push(std::size_t parameter) override;
  void end() override {}

 private:
  Network& network_;
  LearningRate rate_;
  OptimiserStep step_;
  std::vector<Buffer> memory_;
  std::vector<std::vector<Tensor>> state_;  ///< By parameter.
};

}  // namespace duplex
