// Flags that choose a network; the same for every command that takes one.
#pragma once
#include <CLI/CLI.hpp>

#include <string>

#include "models/registry.h"
#include "tools/run_directory/run_config.h"

namespace duplex::tools {

struct ModelFlags {
  std::string net;
  models::ModelOptions options;

  /// `required`: whether --net has to be given.
  void add_to(CLI::App& app, bool required = true);
  Model build() const { return models::build(net, options); }
  /// The model's part of config.json.
  RunConfig config(const Model& model) const;
};

}  // namespace duplex::tools
