// Writes and reads a model's parameters, trained ones and running statistics, by name as a
// safetensors file.
#pragma once
#include <functional>
#include <map>
#include <string>

#include "layers/network.h"

namespace duplex {

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
