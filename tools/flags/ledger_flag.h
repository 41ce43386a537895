// The flag that says which frames a ledger's file has; the same for dist and simulate.
#pragma once
#include "net/ledger/sampled_steps.h"
#include "tools/flags/command_line.h"

namespace duplex::tools {

/// It fills in `sample`, which must outlive `app`.
void add_ledger_flag(CommandLine& app, net::FrameSample& sample);

}  // namespace duplex::tools
