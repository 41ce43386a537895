// Training steps of a network: batches from a loader, through the device and the exchange.
#pragma once
#include <cstdint>

#include "datasets/loader.h"
#include "layers/network.h"
#include "tools/training.h"

namespace duplex::tools {

/// Steps of a network on a loader's batches, which must both outlive it. On a device that computes
/// while the host goes on, the next batch comes, and is copied, in the meantime. Some steps
/// (looks_for_nan) throw Error where the loss is finite and the weights are not.
StepRunner network_steps(Network& network, datasets::BatchLoader& loader, std::uint64_t seed);

}  // namespace duplex::tools
