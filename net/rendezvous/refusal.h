// Tells the other ranks that this one cannot start.
#pragma once
#include <string>
#include <vector>

#include "net/rendezvous/mesh.h"

namespace duplex::net {

/// Listens and connects as the rank would, and answers every handshake with the reason, until all
/// of `peers` have been told or the deadline has passed. It listens on `listener`, or, where that
/// is empty, on the rank's address. A peer that cannot be told notices that nobody comes. Throws
/// nothing.
void tell_refusal(const MeshSpec& spec, const std::string& reason, const std::vector<int>& peers,
                  Listener& listener, Deadline deadline) noexcept;

}  // namespace duplex::net
