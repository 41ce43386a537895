// Flags of the commands that open connections to other machines.
#pragma once
#include <CLI/CLI.hpp>

#include <chrono>
#include <string>

#include "net/rendezvous/mesh.h"

namespace duplex::tools {

struct WireFlags {
  std::string key, congestion;
  double timeout_s = 60.0;
  net::ProtectionSpec protection;

  void add_to(CLI::App& app);
  std::chrono::milliseconds timeout() const;
  /// Sets key, protection of frames, congestion control and timeout. Throws Error if the key cannot
  /// be read.
  void apply_to(net::MeshSpec& spec) const;
};

}  // namespace duplex::tools
