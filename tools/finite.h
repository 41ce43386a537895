// Divergence: when a training looks for numbers that are not finite, and how it ends then.
#pragma once
#include <cstdint>
#include <string>

#include "layers/network.h"
#include "tools/evaluation.h"

namespace duplex::tools {

/// Whether the step of this number, from 0, looks for NaN in all that it computes, and at the
/// weights that it leaves: the 1st, 2nd, 4th, ... 64th and every 100th. In the others a CPU's fused
/// ReLU may hide it (Device::keep_nan); their losses are looked at all the same.
bool looks_for_nan(std::uint64_t step);

/// Throws Error, naming a parameter or running statistic that is not finite throughout. `when`
/// begins the message: "step 12".
void require_finite(Network& network, const std::string& when);

/// Throws Error where outputs of the last test were not finite, or the network's weights are not.
void require_finite(const Accuracy& accuracy, Network& network);

}  // namespace duplex::tools
