// Measures what it takes to bring a network's gradients into the host's memory, plain, as they
// cross the wire, and weights back.
#pragma once
#include "layers/network.h"

namespace duplex::tools {

/// Seconds for all trained parameters.
struct StagingTimes {
  double download = 0.0;  ///< Of gradients.
  double upload = 0.0;    ///< Of weights.
};

/// Measures both a few times; the weights stay as they are. The network's device is done with an
/// operation when that returns.
StagingTimes measure_staging(Network& network);

}  // namespace duplex::tools
