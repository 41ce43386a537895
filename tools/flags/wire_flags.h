// Flags of the commands that open connections to other machines.
#pragma once
#include <chrono>
#include <string>

#include "net/rendezvous/mesh.h"
#include "tools/flags/command_line.h"

namespace duplex::tools {

struct WireFlags {
  std::string key, congestion;
  std::string link_rate;  ///< As given; empty: no limit.
  double timeout_s = 60.0;
  net::ProtectionSpec protection;

  void add_to(CommandLine& app);
  std::chrono::milliseconds timeout() const;
  /// Returns the bytes a second of --link-rate; 0: no limit. Throws Error for a rate that is none.
  double rate() const;
  /// Sets key, protection of frames, congestion control, timeout and link. Throws Error if the key
  /// cannot be read, and for a rate that is none.
  void apply_to(net::MeshSpec& spec) const;
};

}  // namespace duplex::tools
