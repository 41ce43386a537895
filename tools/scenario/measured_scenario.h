// What plan has measured of machines, as a simulation takes it.
#pragma once
#include <string>
#include <vector>

#include "tools/plan/machines_file.h"
#include "tools/scenario/scenario.h"

namespace duplex::tools {

const MeasuredMachine& fastest_of(const MachinesFile& file);

/// The fastest machine computes, and what machines share, such as owners' rates, is the slowest's.
/// Throws Error, naming `path`, if the file is of another network.
Scenario measured_scenario(const MachinesFile& file, const std::string& path, const Model& model);

/// Seconds from one machine to another: half of the least round trip.
double measured_latency(const MachinesFile& file);

/// Returns for each machine the first one of the file that is on the same host.
std::vector<int> hosts_of(const MachinesFile& file);

}  // namespace duplex::tools
