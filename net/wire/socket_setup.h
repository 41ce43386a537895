// What sockets and listeners have in common: addresses as the kernel has them, and its options.
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

/// `flags`: of getaddrinfo. Throws Error naming the host.
Addresses resolve(const Address& address, int flags);
std::string text_of(const sockaddr_storage& address);  ///< "host:port", in numbers.
sockaddr_storage local_of(int fd);                     ///< This side's address.
bool is_loopback(const sockaddr_storage& address);

bool set_option(int fd, int level, int option, int value);  ///< False: the kernel refuses.
/// Empty: leaves the system's. Throws Error(Exit::usage) where the kernel does not know or allow
/// it.
void set_congestion(int fd, const std::string& name);
/// What every connection has: nothing delayed, little unsent in the kernel, calls that do not wait.
void prepare(int fd);
/// Whether a segment is so much less than what may be unsent that the kernel takes more behind an
/// unfinished one; loopback's are as large.
bool takes_more_behind_a_segment(int fd);

/// Whether TCP of this machine (or network namespace) forgets in a pause how fast a connection
/// goes: net.ipv4.tcp_slow_start_after_idle, on unless somebody turned it off.
bool forgets_pace();

/// What to take where nobody asks for another: "cubic" where this process may have it, else "", the
/// system's. docs/decisions/flow-control.md says why.
std::string preferred_congestion();

}  // namespace duplex::net
