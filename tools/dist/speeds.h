// The speeds of the ranks of a run, by which --share speeds and auto share out the samples of a
// step.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "tools/dist/dist_spec.h"

namespace duplex::tools {

/// A rank measures its speed while it trains, so that it knows it after a pause.
struct KnownSpeed {
  double image_seconds = 0.0;  ///< Seconds that this one computes for an image; 0: not known.
};

/// Meets all ranks and tells them how many seconds this one computes for an image: what it knows
/// or, if it trains, what its network takes on random images for a moment (a replay says its time).
/// All ranks call it, and get the same shares, by worker; empty where ParallelSpec::sharing lets
/// speeds that are nearly alike be. After a pause (`known`) those of `spec` stay where a worker
/// would have no image of a step. Throws Error as Mesh::join does, and Error(Exit::usage) where
/// addresses of ranks are not known.
std::vector<std::int64_t> shares_by_speed(const DistSpec& spec,
                                          const std::optional<KnownSpeed>& known = {});

/// Tells ranks that are in shares_by_speed() why this one will not come.
void tell_shares_cannot_be_found(const DistSpec& spec, const net::AbortReason& reason);

}  // namespace duplex::tools
