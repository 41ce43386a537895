// Host names that mislead, and this machine's network interfaces.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "net/topology/topology.h"
#include "net/wire/address.h"

namespace duplex::net {

/// Returns whether the host is "localhost" or a loopback address.
bool means_loopback(const std::string& host);

/// Returns the loopback address that this machine resolves a host name to. Empty if it resolves to
/// another address or to none, and for names that mean loopback ("localhost", "127.0.0.1").
std::string loopback_behind(const std::string& host);

/// Many systems give their own name 127.0.1.1 in /etc/hosts. A rank would then listen where no
/// other machine reaches it, or look for another rank on its own machine. Throws
/// Error(Exit::usage), naming both ranks, if that is so for a connection of this rank with one that
/// is not on loopback too. `loopback` is loopback_behind, or a test's function.
void check_names(const Topology& topology, int rank, const std::vector<Address>& addresses,
                 const std::function<std::string(const std::string& host)>& loopback);

/// Describes the interface that has the address of "10.0.0.2:7117" as " (eth0, 1 Gbit/s)", without
/// the speed if the kernel knows none or the interface is virtual. Empty if no interface has it.
std::string interface_text(const std::string& address);

}  // namespace duplex::net
