// What this machine calls itself and the others: host names that mislead, network interfaces.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "net/topology/topology.h"
#include "net/wire/address.h"

namespace duplex::net {

/// Whether it is "localhost" or a loopback address.
bool means_loopback(const std::string& host);

/// The loopback address that this machine resolves a host name to; empty where it is another one or
/// none, and for what is meant as loopback ("localhost", "127.0.0.1").
std::string loopback_behind(const std::string& host);

/// Many systems give their own name 127.0.1.1 in /etc/hosts: a rank would listen where no other
/// machine reaches it, or look for another rank at its own door. Throws Error(Exit::usage), naming
/// both ranks, if that is so for a connection of this rank with one that is not on loopback too.
/// `loopback`: loopback_behind.
void check_names(const Topology& topology, int rank, const std::vector<Address>& addresses,
                 const std::function<std::string(const std::string& host)>& loopback);

/// The interface with the address of "10.0.0.2:7117": " (eth0, 1 Gbit/s)", without the speed where
/// the kernel knows none or the interface is virtual. Empty where no interface has it.
std::string interface_text(const std::string& address);

}  // namespace duplex::net
