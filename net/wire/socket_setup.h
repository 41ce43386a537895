// Functions that sockets and listeners share: addresses as the kernel has them, and its options.
#pragma once
#include <netdb.h>
#include <sys/socket.h>

#include <memory>
#include <string>

#include "net/wire/address.h"

namespace duplex::net {

std::string errno_text(int error);

struct FreeAddresses {
  void operator()(addrinfo* list) const { freeaddrinfo(list); }
};
using Addresses = std::unique_ptr<addrinfo, FreeAddresses>;

/// `flags` are getaddrinfo's. Throws UnknownHost.
Addresses resolve(const Address& address, int flags);
std::string text_of(const sockaddr_storage& address);  ///< "host:port" in numbers.
sockaddr_storage local_of(int fd);                     ///< This side's address.
bool is_loopback(const sockaddr_storage& address);

bool set_option(int fd, int level, int option, int value);  ///< False if the kernel refuses.
/// Sets the congestion control; an empty name leaves the system's. Throws Error(Exit::usage) if the
/// kernel does not know or does not allow it.
void set_congestion(int fd, const std::string& name);
/// Sets what every connection has: no delay, little unsent in the kernel, calls that do not block.
void prepare(int fd);
/// Returns whether a segment is so much less than what may be unsent that the kernel takes more
/// behind an unfinished one. Loopback's segments are too large for that.
bool takes_more_behind_a_segment(int fd);

/// Returns whether TCP of this machine (or network namespace) forgets in a pause how fast a
/// connection goes: net.ipv4.tcp_slow_start_after_idle, which is on unless somebody turned it off.
bool forgets_pace();

/// The congestion control to use if the user asks for none: "cubic" if this process may have it,
/// else "", the system's. docs/decisions/flow-control.md says why.
std::string preferred_congestion();

}  // namespace duplex::net
