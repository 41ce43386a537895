// Says of which layers a run exchanges factors instead of gradients and weights.
#pragma once
#include <cstddef>
#include <vector>

#include "layers/model.h"
#include "net/factors/factor_map.h"
#include "tools/plan/parallel.h"

namespace duplex::tools {

/// Returns whether the factors of so many samples, which every worker receives, are fewer values
/// than the gradient and the weights, which its owners receive and send.
bool factors_save(std::size_t outputs, std::size_t inputs, std::size_t samples);

/// Returns the layers, in forward order. `samples`: of each worker's part of a step. Throws
/// Error(Exit::usage), beginning with `command`, if factors are on and the network has no linear
/// layer.
std::vector<Model::Linear> factored_layers(const Model& model, const ParallelSpec& parallel,
                                           const std::vector<std::size_t>& samples,
                                           const std::string& command);

/// The part of a linear layer's backward that is left where the gradient of its weights is not
/// computed: that by its input, which is as many multiplications.
constexpr double factored_backward = 0.5;

/// Returns the layers as an exchange takes them. `samples`: of each worker's part of a step.
std::vector<net::FactoredLayer> of_exchange(const std::vector<Model::Linear>& layers,
                                            const std::vector<std::size_t>& samples);

}  // namespace duplex::tools
