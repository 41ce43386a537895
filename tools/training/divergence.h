// Divergence: when a training looks for numbers that are not finite, and how it ends then.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "core/error.h"
#include "layers/network.h"
#include "tools/training/evaluation.h"

namespace duplex::tools {

/// Returns whether the step of this number, from 0, of `steps` looks for NaN in all that it
/// computes, and in the weights that it leaves. The 1st, 2nd, 4th, ... 64th, every 100th and the
/// last do. In the others a fused ReLU may hide it (Device::keep_nan); their losses are looked at
/// all the same.
bool looks_for_nan(std::uint64_t step, std::uint64_t steps);

/// The error "step 12: the loss is no longer finite; try a smaller --lr"; `when` is its beginning.
Error diverged(const std::string& when, const std::string& what);

/// Throws diverged() if there is a loss that is not finite.
void require_finite_loss(std::uint64_t step, const std::optional<double>& loss);

/// Throws diverged() with the name of a parameter or running statistic, if one is not finite
/// throughout.
void require_finite(Network& network, const std::string& when);

/// Throws Error if outputs of the last test, or the network's weights, are not finite.
void require_finite(const Accuracy& accuracy, Network& network);

}  // namespace duplex::tools
