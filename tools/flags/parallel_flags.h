// The flags that say how workers train together (Appendix C.3); the same for dist and simulate.
#pragma once
#include <CLI/CLI.hpp>

#include <string>

#include "tools/plan/parallel.h"
#include "tools/run_directory/run_config.h"

namespace duplex::tools {

struct ParallelFlags {
  ParallelSpec spec;

  void add_to(CLI::App& app);
  /// Call it after parsing: checks what CLI11 cannot. Throws Error(Exit::usage).
  void resolve(const std::string& command) const;
  /// Their part of config.json.
  ParallelConfig config(const net::Topology& topology) const;
};

}  // namespace duplex::tools
