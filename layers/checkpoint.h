// Writes and reads a model's parameters, trained ones and running statistics, by name as a
// safetensors file.
#pragma once
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "core/files/state_file.h"
#include "layers/network.h"

namespace duplex {

/// Names of an optimiser's arrays begin so: "optimizer.momentum_buffer.conv1.weight". A training
/// that starts from given weights ignores them.
inline const std::string optimiser_prefix = "optimizer.";

/// Returns all parameters and running statistics as a checkpoint holds them, in the order of the
/// layers. The network must outlive the result.
std::vector<StateArray> state_of(Network& network);
/// Returns the running statistics alone.
std::vector<StateArray> statistics_of(Network& network);

/// Writes all parameters and `metadata`. The file appears whole or not at all.
void save_checkpoint(const std::string& path, Network& network,
                     const std::map<std::string, std::string>& metadata);

/// Reads a file that holds exactly the parameters of `model`, and hands them to `take` one after
/// the other, in the order of the layers. Throws Error listing the names that are missing, of
/// another shape, or unknown, before `take` is called for any.
void read_checkpoint(
    const std::string& path, const Model& model,
    const std::function<void(const ParameterSpec& spec, const float* values)>& take);

/// Reads a file into a network, by read_checkpoint.
void load_checkpoint(const std::string& path, Network& network);

}  // namespace duplex
