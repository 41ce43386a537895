// A replay is a computation in which nothing is computed. Every layer waits as long as a profile
// says, while real bytes cross real connections: so a cluster is rehearsed on one machine.
#pragma once
#include <cstdint>
#include <utility>
#include <vector>

#include "layers/network.h"
#include "tools/prediction/layer_times.h"
#include "tools/training/computation.h"
#include "tools/training/replay_clock.h"

namespace duplex::tools {

/// Layers end at deadlines, so late wake-ups do not add up; waiting for weights moves all later
/// deadlines.
class Replay final : public LayerComputation {
 public:
  Replay(const Model& model, LayerTimes times);

  /// Like Network's: the observer is told of every layer that takes time.
  void observe(LayerObserver observer) { observer_ = std::move(observer); }

  std::size_t layers() const override { return parameters_.size(); }
  const std::vector<std::size_t>& parameters_of(std::size_t layer) const override {
    return parameters_[layer];
  }
  void begin(std::uint64_t) override {}
  void forward(std::size_t layer) override;
  void backward(std::size_t layer) override;
  void synchronize() override {}
  StepOutcome outcome() override { return {}; }

 private:
  void run_layer(std::size_t layer, Phase phase);

  LayerTimes times_;
  LayerObserver observer_;
  std::vector<std::vector<std::size_t>> parameters_;  ///< By layer: its trained parameters.
  ReplayClock clock_;
};

}  // namespace duplex::tools
