// Finds out how a machine sees the others of a nodefile: what their names stand for, and the
// interfaces over which it reaches them.
#pragma once
#include <chrono>
#include <string>
#include <vector>

#include "tools/check/machine/facts.h"
#include "tools/check/machine/messages.h"

namespace duplex::tools {

/// Looks every host up, all at once; a name that is not found within `limit` counts as unknown. It
/// finds the interface of each route, without sending anything, and the settings of TCP.
void add_network_facts(MachineFacts& facts, const std::vector<CheckedMachine>& machines,
                       std::chrono::milliseconds limit);

/// Returns what the files in `folder` (/sys/class/net/NAME) say of an interface: all but the queue.
InterfaceFacts interface_facts(const std::string& name, const std::string& folder);

}  // namespace duplex::tools
