// The flags that say how workers train together (Appendix C.3); the same for dist and simulate.
#pragma once
#include <string>
#include <vector>

#include "tools/flags/command_line.h"
#include "tools/plan/parallel.h"

namespace duplex::tools {

/// They fill in `spec`, which must outlive `app`.
void add_parallel_flags(CommandLine& app, ParallelSpec& spec);
/// Reads "4", or "4:1:1" by worker. Calls refuse().
std::vector<int> parse_slots(const std::string& text);
/// Checks after parsing what CLI11 cannot. Throws Error(Exit::usage) with the command's name.
void check_parallel_flags(const ParallelSpec& spec, const std::string& command);

/// Adds the flags that say how a network is cut over ranks.
void add_cut_flags(CommandLine& app, ParallelSpec& spec);
/// Call it after parsing. Throws Error(Exit::usage), beginning with `command`.
void check_cut_flags(const ParallelSpec& spec, const std::string& command);

}  // namespace duplex::tools
