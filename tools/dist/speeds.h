// The speeds of the ranks of a run, by which --share speeds and auto share out the samples of a
// step.
#pragma once
#include <cstdint>
#include <vector>

#include "tools/dist/dist_spec.h"

namespace duplex::tools {

/// Meets all ranks and tells them how many seconds this one computes for an image: `known`, or if
/// that is 0, what its network takes on random images for a moment (a replay says its time). All
/// ranks call it, and get the same shares, by worker; empty where ParallelSpec::sharing lets speeds
/// that are nearly alike be. Throws Error as Mesh::join does, and Error(Exit::usage) where
/// addresses of ranks are not known.
std::vector<std::int64_t> shares_by_speed(const DistSpec& spec, double known = 0.0);

}  // namespace duplex::tools
