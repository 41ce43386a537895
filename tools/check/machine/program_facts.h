// Finds out this program's version on a machine, and what it computes on.
#pragma once
#include "tools/check/machine/facts.h"

namespace duplex::tools {

/// Fills in version, backend, and GPUs. `root`: where /proc is.
void add_program_facts(MachineFacts& facts, const std::string& root = "");

}  // namespace duplex::tools
