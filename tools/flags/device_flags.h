// Flags that say what computes; local, dist and bench share them.
#pragma once
#include <CLI/CLI.hpp>

#include <string>

#include "tools/setup/device_spec.h"

namespace duplex::tools {

/// They fill in `spec`, which must outlive `app`. `more`: other values that --device takes, for its
/// help.
void add_device_flags(CLI::App& app, DeviceSpec& spec, const std::string& more = "");

}  // namespace duplex::tools
