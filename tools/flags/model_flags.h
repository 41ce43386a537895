// Flags that choose a network; the same for every command that takes one.
#pragma once
#include <CLI/CLI.hpp>

#include "tools/setup/model_spec.h"

namespace duplex::tools {

/// They fill in `spec`, which must outlive `app`. `required`: whether --net has to be given.
void add_model_flags(CLI::App& app, ModelSpec& spec, bool required = true);

}  // namespace duplex::tools
