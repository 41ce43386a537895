// Tells the other ranks that this one cannot start.
#pragma once
#include <string>

#include "net/rendezvous/mesh.h"

namespace duplex::net {

/// Listens and connects as the rank would, and answers every handshake with the reason, until all
/// peers have been told or the deadline has passed. A peer that cannot be told notices that nobody
/// comes.
void tell_refusal(const MeshSpec& spec, const std::string& reason, Deadline deadline);

}  // namespace duplex::net
