// Watches the links of a rank while other ranks are still awaited. Nothing comes over them then but
// offers, what goes with them (net/rendezvous/resume.h), an abort, or the end of a connection.
#pragma once
#include <vector>

#include "net/rendezvous/mesh.h"
#include "net/wire/frame.h"

namespace duplex::net {

/// Throws Error with the reason and code if a linked rank has ended the run, and NetworkError if
/// one is lost, `waited` seconds after this rank began to wait. Reads nothing.
void check_links(const std::vector<Link>& links, double waited);

/// Returns whether the next frame of a link is there as a whole and of this kind.
bool has_next(const Link& link, FrameKind kind);

/// Tells all linked ranks why this one ends the run, and gives them a second to read it.
void end_links(std::vector<Link>& links, const AbortReason& reason);

}  // namespace duplex::net
