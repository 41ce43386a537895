// A computation is what the training loop asks to compute: a network on a device
// (network_computation.h), a replay of one (replay.h), or a rank's part of one that is cut
// (tools/parts/part_computation.h).
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "core/exchange.h"
#include "core/transfer.h"
#include "tools/display/hits.h"

namespace duplex::tools {

/// The outcome of a step, beside new gradients. If the device computes while the host goes on,
/// `waits` is how long it had nothing to do for lack of input or of weights, which the host cannot
/// see.
struct StepOutcome {
  std::optional<double> loss;  ///< None if nothing is computed.
  std::optional<CopyWaits> waits;
  std::optional<Hits> hits;  ///< None: not counted.
  double maps = 0.0;         ///< Seconds of waiting for other ranks' maps.
  double data = 0.0;         ///< Seconds of waiting for images within the step.
};

/// Computes steps.
class Computation {
 public:
  virtual ~Computation() = default;
  /// Computes a step's forward and backward, with all calls of `exchange` that belong to a step.
  virtual void run(Exchange& exchange, std::uint64_t step) = 0;
  /// The outcome of the step that has ended. Throws Error if it left numbers that are not finite.
  virtual StepOutcome outcome() = 0;
};

/// Computes a step layer by layer. Layers go by their number in Model::nodes; 0, the input, has no
/// parameters.
class LayerComputation : public Computation {
 public:
  /// Alone, push updates the layer's weights and await has nothing to wait for. With others, push
  /// sends the gradient and returns at once: it travels to the weights' owners while backward goes
  /// on, an owner updates, and the new weights travel back while the next forward has begun.
  void run(Exchange& exchange, std::uint64_t step) override;

  virtual std::size_t layers() const = 0;
  /// The trained parameters of a layer, by number in the network.
  virtual const std::vector<std::size_t>& parameters_of(std::size_t layer) const = 0;

  /// Returns when the batch of the step is there.
  virtual void begin(std::uint64_t step) = 0;
  virtual void forward(std::size_t layer) = 0;   ///< Called in ascending order.
  virtual void backward(std::size_t layer) = 0;  ///< Called in descending order.
  /// They do the same for all layers, where nothing is exchanged in between.
  virtual void forward_all();
  virtual void backward_all();
  /// Returns when all of that has been computed.
  virtual void synchronize() = 0;

 private:
  void run_by_layers(Exchange& exchange);
  void run_whole(Exchange& exchange);
};

}  // namespace duplex::tools
