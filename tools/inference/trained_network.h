// A trained network that is used, on a device.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "layers/network.h"
#include "tools/setup/weights_file.h"

namespace duplex::tools {

struct TrainedNetwork {
  std::unique_ptr<Device> device;  ///< It outlives the network.
  std::unique_ptr<Network> network;
};

/// Makes the network for batches of so many images, with the weights of the file. Throws Error if
/// they do not fit it, or are not finite.
TrainedNetwork load_trained(const WeightsFile& weights, const Model& model,
                            const DeviceSpec& computing, std::int64_t batch);

/// "LeNet, 10 classes, after 1,875 steps, from weights.safetensors".
std::string about(const WeightsFile& weights, const Model& model);

/// The name of a class, which any terminal can show; its number where it has none.
std::string name_of_class(const std::vector<std::string>& names, std::size_t number);

/// A cell of CSV: in quotes where it has to be.
std::string csv_cell(const std::string& text);

}  // namespace duplex::tools
