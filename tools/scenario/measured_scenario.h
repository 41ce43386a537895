// Makes a simulation's scenario of the machines that plan has measured.
#pragma once
#include <string>
#include <vector>

#include "tools/plan/machines_file.h"
#include "tools/scenario/scenario.h"

namespace duplex::tools {

const MeasuredMachine& fastest_of(const MachinesFile& file);

/// Computing is the fastest machine's; what others wait for, such as the owners' rate, is the
/// slowest's.
/// Throws Error, naming `path`, if the file is of another network.
Scenario measured_scenario(const MachinesFile& file, const std::string& path, const Model& model);

/// Seconds from one machine to another: half of the least round trip.
double measured_latency(const MachinesFile& file);

/// Returns for each machine the first one of the file that is on the same host.
std::vector<int> hosts_of(const MachinesFile& file);

}  // namespace duplex::tools
