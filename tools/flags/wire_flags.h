// Flags of everything that opens connections to other machines.
#pragma once
#include <CLI/CLI.hpp>

#include <chrono>
#include <string>

#include "layers/model.h"
#include "net/rendezvous/mesh.h"

namespace duplex::tools {

struct WireFlags {
  std::string key, congestion;
  double timeout_s = 60.0;

  void add_to(CLI::App& app);
  std::chrono::milliseconds timeout() const;
  /// Sets what these flags are about. Throws Error where the key cannot be read.
  void apply_to(net::MeshSpec& spec) const;
};

/// What ranks compare of a model: its name, its classes, and its trained parameters' names and
/// sizes.
net::Fingerprint fingerprint_of(const Model& model);

}  // namespace duplex::tools
