// Divergence: when a training looks for numbers that are not finite, and how it ends then.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "core/error.h"
#include "layers/network.h"
#include "tools/training/evaluation.h"

namespace duplex::tools {

/// Whether the step of this number, from 0, looks for NaN in all that it computes, and at the
/// weights that it leaves: the 1st, 2nd, 4th, ... 64th and every 100th. In the others a fused ReLU
/// may hide it (Device::keep_nan); their losses are looked at all the same.
bool looks_for_nan(std::uint64_t step);

/// "step 12: the loss is no longer finite; try a smaller --lr". `when` is the beginning.
Error diverged(const std::string& when, const std::string& what);

/// Throws `diverged` where there is a loss that is not finite.
void require_finite_loss(std::uint64_t step, const std::optional<double>& loss);

/// Throws `diverged` with the name of a parameter or running statistic that is not finite
/// throughout.
void require_finite(Network& network, const std::string& when);

/// Throws Error where outputs of the last test were not finite, or the network's weights are not.
void require_finite(const Accuracy& accuracy, Network& network);

}  // namespace duplex::tools
