// The ranks agree on the checkpoint that all of them go on from.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "net/rendezvous/mesh.h"

namespace duplex::net {

/// What one rank can go on from.
struct ResumeOffer {
  /// Steps of its checkpoints, at most `most_steps`.
  std::vector<std::uint64_t> steps;
  /// One of them at least was written on all ranks, as far as this rank knows; otherwise it kept
  /// them when a run failed, and others may have had no time for it.
  bool complete = false;
  /// The rank has no state of its own, so that it can go on from any step.
  bool any = false;

  static constexpr std::size_t most_steps = 64;
};

/// Returns the newest step that every rank has a checkpoint of; none: there never was a complete
/// one, and the training begins. The coordinator finds it out and tells the others. Call it on
/// every rank, after the mesh was joined and before its links are used otherwise; the ledger's
/// records of it are added to the links'. Throws Error, on every rank, where there was a complete
/// checkpoint and there is none that all have, and NetworkError.
std::optional<std::uint64_t> agree_on_resume(Mesh& mesh, const ResumeOffer& own,
                                             std::chrono::milliseconds timeout);

}  // namespace duplex::net
