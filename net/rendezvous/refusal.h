// Tells the other ranks that this one cannot start.
#pragma once
#include <chrono>
#include <string>
#include <vector>

#include "net/rendezvous/mesh.h"

namespace duplex::net {

/// Time that a rank which cannot take part stays for peers that have not come yet. It is meant for
/// ranks that a script starts together, on machines that may be busy.
constexpr std::chrono::milliseconds refusal_limit{15000};

/// Listens and connects as the rank would, and answers every handshake with the reason, until all
/// of `peers` have been told or the deadline has passed. It listens on `listener`, or, where that
/// is empty, on the rank's address; where that cannot be had, it connects to those, too, that would
/// connect to it. A peer that cannot be told notices that nobody comes. Throws
/// nothing.
void tell_refusal(const MeshSpec& spec, const AbortReason& reason, const std::vector<int>& peers,
                  Listener& listener, Deadline deadline) noexcept;

}  // namespace duplex::net
