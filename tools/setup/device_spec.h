// A device specification: what computes, and how networks are made for it.
#pragma once
#include <cstdint>
#include <memory>
#include <string>

#include "layers/network.h"

namespace duplex::tools {

/// The precision of this name; float32 for any other.
Precision precision_of(const std::string& name);

struct DeviceSpec {
  std::string device = "auto";
  std::string precision = "float32";  ///< Or "tf32", "bf16": on a GPU.
  std::string layout = "measured";    ///< Or "nchw", "nhwc": on a GPU.
  bool graphs = false;                ///< CUDA graphs: on a GPU.
  int threads = 0;                    ///< 0: one for each core that may be used.

  /// Throws Error, as core's make_device does.
  std::unique_ptr<Device> make() const;
  /// Makes the network on the device, in the layout that is asked for. If the layout is to be
  /// measured and the device lets one choose, times steps of training in both; `said`, unless null,
  /// gets a line about it.
  std::unique_ptr<Network> build(const Model& model, Device& on, std::int64_t batch,
                                 bool training = true, std::string* said = nullptr) const;
};

}  // namespace duplex::tools
