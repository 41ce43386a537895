// The hardware of a machine and what of it a process may have: cores, memory, disk; its kernel and
// its clock.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "tools/check/machine/facts.h"

namespace duplex::tools {

/// Fills in what the files of /proc and /sys below `root` say, and the limits of the control groups
/// that this process is in.
void add_host_facts(MachineFacts& facts, const std::string& root = "");

/// Returns the bytes that this process may still have without swap: what /proc/meminfo below `root`
/// says, within the limits of its control groups. Returns 0 where nothing says it.
std::uint64_t available_memory(const std::string& root = "");

/// Looks at the folders: is there room, and may this process write there? A folder that was named
/// before is left out.
std::vector<DiskFacts> disk_facts(const std::vector<std::string>& folders);

}  // namespace duplex::tools
