// Flags that say what computes, and networks that they make; local, dist and bench share them.
#pragma once
#include <CLI/CLI.hpp>

#include <memory>
#include <string>

#include "layers/network.h"

namespace duplex::tools {

struct DeviceFlags {
  std::string device = "auto", precision = "float32", layout = "measured";
  int threads = 0;

  /// `more`: other values that --device takes, for its help.
  void add_to(CLI::App& app, const std::string& more = "");

  /// Throws Error, as core's make_device does.
  std::unique_ptr<Device> make() const;
  /// Makes the network on the device, in the layout that is asked for. If the layout is to be
  /// measured and the device lets one choose, times steps of training in both; `said`, unless null,
  /// gets a line about it.
  std::unique_ptr<Network> build(const Model& model, Device& on, std::int64_t batch,
                                 bool training = true, std::string* said = nullptr) const;
};

}  // namespace duplex::tools
