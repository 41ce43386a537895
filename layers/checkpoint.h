// A model's parameters as a safetensors file: trained ones and running statistics, by name.
#pragma once
#include <functional>
#include <map>
#include <string>

#include "layers/network.h"

namespace duplex {

/// Writes all parameters; `metadata` goes along. The file appears whole or not at all.
void save_checkpoint(const std::string& path, Network& network,
                     const std::map<std::string, std::string>& metadata);

/// Reads a file that holds exactly the parameters of `model`, and hands them to `take` one after
/// the other, in the order of the layers. Throws Error listing the names that are missing, of
/// another shape, or unknown, before `take` is called for any.
void read_checkpoint(
    const std::string& path, const Model& model,
    const std::function<void(const ParameterSpec& spec, const float* values)>& take);

/// read_checkpoint into a network.
void load_checkpoint(const std::string& path, Network& network);

}  // namespace duplex
