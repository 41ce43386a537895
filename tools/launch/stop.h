// duplex launch stop: ends the ranks of a nodefile, on this machine by their records, on the others
// by this program there.
#pragma once
#include <string>
#include <vector>

#include "net/wire/address.h"

namespace duplex::tools {

/// What ranks are given to obey SIGTERM, before SIGKILL.
constexpr double obey_seconds = 3.0;

/// Ends the ranks that run on this machine with the nodefile, and waits until they have ended. Says
/// what it did; `host` is this machine's name there. Exit code 1 where some still run.
int stop_here(const std::string& nodefile, const std::string& host);

/// The same on all machines of the nodefile at once. Exit code 1 where one could not be reached, or
/// ranks still run.
int stop_everywhere(const std::string& nodefile, const std::vector<net::Address>& nodes,
                    const std::string& ssh, bool only_print);

}  // namespace duplex::tools
