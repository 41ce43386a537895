// The ranks agree to begin, when all of them are there, and on the checkpoint that they go on from.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "net/rendezvous/mesh.h"

namespace duplex::net {

/// A checkpoint of all ranks. Checkpoints of as many steps by other numbers of ranks are others.
struct ResumePoint {
  std::uint64_t steps = 0;
  std::uint64_t samples = 0;  ///< That all workers had seen.
  std::uint32_t ranks = 0;    ///< That wrote it.

  bool operator==(const ResumePoint& other) const {
    return steps == other.steps && samples == other.samples && ranks == other.ranks;
  }
};

/// The checkpoints that one rank can go on from.
struct ResumeOffer {
  /// At most `most_points`.
  std::vector<ResumePoint> points;
  /// One of them at least was written on all ranks, as far as this rank knows; otherwise it kept
  /// them when a run failed, and others may have had no time for it.
  bool complete = false;
  /// The rank has no state of its own, so that it can go on from any step.
  bool any = false;
  /// The rank has begun this training, and has never finished writing a checkpoint: none was ever
  /// written on all ranks, whatever the others know.
  bool never = false;

  static constexpr std::size_t most_points = 64;
  static constexpr std::size_t most_bytes = 5 + most_points * 20;
};

/// Returns when every rank has joined the mesh. Before that no rank may send weights: a rank that
/// still waits for others would find them in front of the reason why a rank ends the run. Returns
/// the newest checkpoint that every rank can go on from; none: there never was a complete one, and
/// the training begins. The coordinator finds it out and tells the others. Call it on every rank
/// after Mesh::join; the ledger's records of it are added to the links'. Throws Error, on every
/// rank, where there was a complete checkpoint and there is none that all have, or if a rank ends
/// the run, and NetworkError.
std::optional<ResumePoint> agree_to_begin(Mesh& mesh, const ResumeOffer& own,
                                          std::chrono::milliseconds timeout);

}  // namespace duplex::net
