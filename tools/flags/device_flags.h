// Flags that say what computes; local, dist and bench share them.
#pragma once
#include <string>

#include "tools/flags/command_line.h"
#include "tools/setup/device_spec.h"

namespace duplex::tools {

/// They fill in `spec`, which must outlive `app`. `more`: other values that --device takes, for its
/// help.
void add_device_flags(CommandLine& app, DeviceSpec& spec, const std::string& more = "");
/// Adds --cuda-graphs, for commands that exchange nothing within a step.
void add_graphs_flag(CommandLine& app, DeviceSpec& spec);

}  // namespace duplex::tools
