// Implements the exchange of a machine that trains alone: pushed gradients update weights in place.
#pragma once
#include <cstddef>
#include <vector>

#include "core/exchange.h"
#include "core/files/state_file.h"
#include "core/optimiser.h"
#include "layers/network.h"

namespace duplex {

/// Says when weights are updated: each parameter's when its gradient is pushed, or all together
/// when the last gradient is pushed, in one operation of the device. The bits are the same.
enum class Updates { each, together };

class LocalExchange final : public Exchange {
 public:
  /// The optimiser's state lives on the network's device, laid out as the weights are. Throws Error
  /// if gradients are to be clipped by their norm and are not all there when weights are updated.
  LocalExchange(Network& network, const OptimiserSpec& optimiser, const LearningRate& rate,
                Updates updates = Updates::together);

  bool works_between_steps() const override { return updates_ == Updates::together; }
  void begin(std::uint64_t step) override;
  void await(std::size_t) override {}
  void push(std::size_t parameter) override;
  void end() override {}

  /// Returns the optimiser's arrays of each parameter, as a checkpoint holds them. The exchange
  /// must outlive the result.
  std::vector<StateArray> state();

 private:
  void update(Tensor weights, const Tensor& gradient);
  float scale(const Tensor& gradients);
  /// The part of one of state_ that belongs to such weights.
  Tensor state_for(const Tensor& weights, const Tensor& all) const;

  Network& network_;
  LearningRate rate_;
  Updates updates_;
  OptimiserStep step_;
  std::vector<Buffer> memory_;
  std::vector<Tensor> state_;  ///< Each is laid out as Network::weights().
  std::size_t pushed_ = 0;     ///< Parameters pushed in this step.
  std::vector<float> host_;    ///< Gradients of another memory than the host's, for their norm.
};

}  // namespace duplex
