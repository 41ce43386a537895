// Replay: a step of training in which nothing is computed. Every layer waits as long as a profile
// says, while real bytes cross real connections: a cluster rehearsed on one machine.
#pragma once
#include <string>
#include <vector>

#include "core/exchange.h"
#include "layers/network.h"

namespace duplex::tools {

/// Seconds of a batch, by the layer's number in Model::nodes.
struct LayerTimes {
  std::vector<double> forward, backward;

  double sum() const;  ///< t_grad.
  void scale(double factor);
};

/// From profile.json of local --profile. Throws Error where it is damaged or of another network,
/// naming the first layer that does not fit.
LayerTimes read_profile(const std::string& path, const Model& model);

/// One t_grad, shared out by the layers' multiply-adds: a third forward, two thirds backward.
LayerTimes share_out(double t_grad, const Model& model);

/// "replay:PROFILE": a file, or t_grad in seconds. What follows the colon; empty if `device` is
/// something else.
std::string replay_source(const std::string& device);
LayerTimes layer_times(const std::string& source, const Model& model);

class Replay {
 public:
  Replay(const Model& model, LayerTimes times);

  /// One step, with the exchange's calls in the order in which layers/network.h makes them. Layers
  /// end at deadlines: late wake-ups do not add up, and waiting for weights moves all that follows.
  void step(std::uint64_t number, Exchange& exchange);

  /// As Network's: told of every layer with a time of its own.
  void observe(LayerObserver observer) { observer_ = std::move(observer); }

 private:
  void pass(std::size_t node, Phase phase);

  LayerTimes times_;
  LayerObserver observer_;
  std::vector<std::vector<std::size_t>> parameters_;  ///< By node: its trained parameters.
  std::int64_t deadline_ = 0;                         ///< clock_ns() at which the last layer ended.
};

}  // namespace duplex::tools
