#include "tools/training/replay.h"

namespace duplex::tools {

Replay::Replay(const Model& model, LayerTimes times) : times_(std::move(times)) {
  std::size_t next = 0;
  for (const Model::Entry& entry : model.nodes()) {
    parameters_.emplace_back();
    if (!entry.layer) continue;
    for (const ParameterSpec& spec : model.parameters(entry)) {
      if (spec.trained) parameters_.back().push_back(next++);
    }
  }
}

void Replay::forward(std::size_t layer) {
  if (layer == 0)
    clock_.begin();
  else if (!parameters_[layer].empty())
    clock_.end_wait();
  run_layer(layer, Phase::forward);
}

void Replay::backward(std::size_t layer) {
  run_layer(layer, Phase::backward);
}

void Replay::run_layer(std::size_t layer, Phase phase) {
  const double seconds = (phase == Phase::forward ? times_.forward : times_.backward)[layer];
  if (seconds <= 0.0) return;
  const auto [begin, end] = clock_.run(seconds);
  if (observer_) observer_(layer, phase, begin, end);
}

}  // namespace duplex::tools
