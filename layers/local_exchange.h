// The exchange of a machine that trains alone: pushed gradients update the weights in place.
#pragma once
#include <cstddef>
#include <vector>

#include "core/exchange.h"
#include "core/optimiser.h"
#include "layers/network.h"

namespace duplex {

/// When: a parameter with the push of its gradient, or all at once with the push of the last, in
/// one operation of the device. The bits are the same.
enum class Updates { each, together };

class LocalExchange final : public Exchange {
 public:
  /// The optimiser's state lives on the network's device, laid out as the weights are.
  LocalExchange(Network& network, const OptimiserSpec& optimiser, const LearningRate& rate,
                Updates updates = Updates::together);

  void begin(std::uint64_t step) override;
  void await(std::size_t) override {}
  void push(std::size_t parameter) override;
  void end() override {}

 private:
  void update(Tensor weights, const Tensor& gradient);

  Network& network_;
  LearningRate rate_;
  Updates updates_;
  OptimiserStep step_;
  std::vector<Buffer> memory_;
  std::vector<Tensor> state_;  ///< As Network::weights().
  std::size_t pushed_ = 0;     ///< Parameters, in this step.
};

}  // namespace duplex
