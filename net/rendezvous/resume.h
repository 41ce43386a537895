// The ranks agree to begin, when all of them are there, and on the checkpoint that they go on from.
#pragma once
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "net/rendezvous/mesh.h"

namespace duplex::net {

/// A checkpoint of all ranks. Checkpoints of as many steps by other numbers of ranks are others.
/// One of an asynchronous run has a number in place of steps, and the time at which the run that
/// wrote it began (CoordinatorTime::epoch_ns) in place of samples.
struct ResumePoint {
  std::uint64_t steps = 0;
  std::uint64_t samples = 0;  ///< That all workers had seen.
  std::uint32_t ranks = 0;    ///< That wrote it.
  /// The workers of an asynchronous run kept it when they lost their server, each under a number of
  /// its own.
  bool kept = false;
  /// By worker of an asynchronous run: the step that it goes on with, as far as an owner's chunks
  /// tell, or as the ranks have agreed. A rank that owns none has none, or its own of what was
  /// kept.
  std::vector<std::uint64_t> positions{};
  static constexpr std::uint64_t no_position = ~std::uint64_t{0};  ///< Of a worker not told of.
  /// By worker: the step before which it ends, since others have trained what is behind it; no_end:
  /// at the end of its training. Empty: all end there.
  std::vector<std::uint64_t> ends{};
  static constexpr std::uint64_t no_end = ~std::uint64_t{0};
  /// The run goes on, and the rank is the only one that begins: it need not have this checkpoint,
  /// from whose number it counts on.
  bool late = false;
  /// Ranks that the run went on without when it was written, so that they need not have it. Only
  /// the coordinator tells it, to itself.
  std::set<int> absent{};

  /// Returns whether two ranks mean the same checkpoint.
  bool operator==(const ResumePoint& other) const {
    return samples == other.samples && ranks == other.ranks && kept == other.kept &&
           (kept || steps == other.steps);
  }
};

/// Returns whether a checkpoint is one that workers kept without their server, of some training.
bool keeps_training(const ResumePoint& point);

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
  /// The rank was told to go on from a checkpoint (--resume).
  bool resumes = false;

  static constexpr std::size_t most_points = 64;
};

/// The most bytes of an offer, and of the answer to it. A link's receive buffer has room for them.
constexpr std::uint64_t resume_limit = std::uint64_t{1} << 15;

/// How much longer a rank that waits for another rank's word waits than that one does itself, which
/// so has time to report whom it lacks.
std::chrono::milliseconds to_report(std::chrono::milliseconds timeout);

struct FileSharing;

/// Returns when every rank has joined the mesh. Before that no rank may send weights: a rank that
/// still waits for others would find them in front of the reason why a rank ends the run. Returns
/// the newest checkpoint that every rank can go on from, by itself or with files of the others,
/// which it has got by then (net/rendezvous/held_files.h); none: there never was a complete one,
/// and the training begins. The coordinator finds it out and tells the others. Call it on every
/// rank after Mesh::join; the ledger's records of it are added to the links'. `sharing`: null on
/// every rank where there are no files to share. Throws Error, on every rank, where there was a
/// complete checkpoint and there is none that all can have, or if a rank ends the run, and
/// NetworkError. A checkpoint that workers kept without their server counts as one that there was:
/// it holds weights that nobody else has, unless none of them had trained.
std::optional<ResumePoint> agree_to_begin(Mesh& mesh, const ResumeOffer& own,
                                          std::chrono::milliseconds timeout,
                                          const FileSharing* sharing = nullptr);

/// Takes the offer of a lost rank that has joined a run which goes on, and answers it: the rank
/// goes on from `point`, or ends with `error` where that is not empty. Adds the records to the
/// link's. Throws ProtocolError and NetworkError.
void answer_late(Link& link, ResumePoint point, const std::string& error, Deadline deadline);

}  // namespace duplex::net
