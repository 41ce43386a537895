// Flags of the commands that open connections to other machines.
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
  /// Sets key, congestion control and timeout. Throws Error if the key cannot be read.
  void apply_to(net::MeshSpec& spec) const;
};

/// The fingerprint by which ranks compare a model: its name, its classes, and its trained
/// parameters' names and sizes.
net::Fingerprint fingerprint_of(const Model& model);

}  // namespace duplex::tools
