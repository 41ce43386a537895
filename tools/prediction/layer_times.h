// Seconds a layer: what a profile has measured, or one t_grad shared out. Replays wait so long, and
// simulations reckon with it.
#pragma once
#include <string>
#include <vector>

#include "layers/model.h"

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

}  // namespace duplex::tools
