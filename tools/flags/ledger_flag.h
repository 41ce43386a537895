// The flag that says which frames a ledger's file has; the same for dist and simulate.
#pragma once
#include <CLI/CLI.hpp>

#include "net/ledger/sampled_steps.h"

namespace duplex::tools {

/// It fills in `sample`, which must outlive `app`.
void add_ledger_flag(CLI::App& app, net::FrameSample& sample);

}  // namespace duplex::tools
