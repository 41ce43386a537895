// The files of checkpoints that each rank holds, and the plan by which ranks get those that they
// lack.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "net/rendezvous/resume.h"
#include "net/topology/topology.h"

namespace duplex::net {

/// Files of one checkpoint, of the parts of ranks that follow one another. With `none`, the holder
/// of some other file knows from it that these ranks wrote no file.
struct HeldFiles {
  ResumePoint point;
  int first = 0, last = 0;  ///< The ranks whose parts they are.
  bool copies = false;      ///< The copies that other ranks kept.
  bool partial = false;  ///< They lack what only the rank itself knew, such as running statistics.
  bool cut = false;      ///< The network of the run that wrote them was cut.
  bool none = false;     ///< There are no files, and nobody needs them.

  bool has(const ResumePoint& of, int rank) const {
    return point == of && first <= rank && rank <= last;
  }
};

/// The most that a rank tells; it leaves others out.
constexpr std::size_t most_held = 256;
constexpr std::size_t most_held_bytes = 4 + most_held * 29;

std::vector<std::uint8_t> encode_held(const std::vector<HeldFiles>& held);
/// Throws ProtocolError.
std::vector<HeldFiles> decode_held(const std::vector<std::uint8_t>& payload);

/// A part that a rank has to have to go on from a checkpoint.
struct PartNeed {
  int rank = 0;        ///< Whose part.
  bool whole = false;  ///< A partial file does not do.
};

/// All ranks together know this of a checkpoint.
struct HeldParts {
  bool cut = false;  ///< The network of the run that wrote it was cut.
  /// Returns whether some rank holds the part of a rank, as a whole if that is asked.
  std::function<bool(int rank, bool whole)> held;
};

/// Returns the parts that a rank of this run needs of a checkpoint, whether they are held or not;
/// parts that there never were do not count.
using Needs = std::function<std::vector<PartNeed>(const ResumePoint& point, int rank,
                                                  const HeldParts& parts)>;

/// How a rank takes part in sharing files out.
struct FileSharing {
  std::vector<HeldFiles> held;  ///< They have been verified.
  Needs needs;                  ///< The coordinator asks it.
  /// Where a file lies, or is to lie; its folder need not be there.
  std::function<std::string(const ResumePoint& point, int rank, bool copy)> path;
  /// A rank's part has come and lies in its place. Throws Error if it is damaged.
  std::function<void(const ResumePoint& point, int rank)> received;
  std::function<void(const std::string&)> log;  ///< Takes a line for the user; may be empty.
};

/// A file that one rank sends to another.
struct FileTransfer {
  int from = 0, to = 0;
  int rank = 0;       ///< Whose part it is.
  bool copy = false;  ///< The sender has it as a copy.
};

/// How all ranks can go on from a checkpoint.
struct SharingPlan {
  std::vector<int> missing;  ///< Parts that nobody holds. Not empty: they cannot.
  /// In an order in which every rank can do its own one by one: a file that is passed on comes to
  /// the rank that does so before.
  std::vector<FileTransfer> transfers;
};

/// A rank as the coordinator knows it.
struct RankHolding {
  bool ready = false;  ///< It can go on without anything of the others.
  std::vector<HeldFiles> held;
};

/// `ranks`: by rank.
SharingPlan plan_sharing(const Topology& topology, const ResumePoint& point,
                         const std::vector<RankHolding>& ranks, const Needs& needs);

}  // namespace duplex::net
