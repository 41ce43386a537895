// Trains on random images, to time a network without a data set.
#pragma once
#include <cstddef>
#include <functional>
#include <vector>

#include "layers/network.h"

namespace duplex::tools {

struct RandomSteps {
  std::vector<double> seconds;  ///< Of each step that counts.
  std::size_t on_device = 0;    ///< Bytes allocated, with the optimiser's state.
};

/// Trains by SGD with momentum: `warm_up` steps that do not count, then others until `enough` says
/// of their number that it is. `look`: steps look for NaN, as some of a training's do
/// (tools/training/divergence.h).
RandomSteps time_random_steps(Network& network, int warm_up,
                              const std::function<bool(std::size_t counted)>& enough,
                              bool look = false);

}  // namespace duplex::tools
