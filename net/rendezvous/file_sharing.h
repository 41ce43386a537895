// Ranks send each other files of checkpoints before a run begins.
#pragma once
#include <chrono>
#include <cstdint>
#include <vector>

#include "net/rendezvous/held_files.h"
#include "net/rendezvous/mesh.h"

namespace duplex::net {

/// The bytes of a file in one frame.
constexpr std::size_t file_part = std::size_t{1} << 20;

/// Tells all ranks what they send and receive; the coordinator calls it.
void tell_transfers(Mesh& mesh, const std::vector<FileTransfer>& transfers, Deadline deadline);

/// This is what a rank has to do.
struct OwnTransfers {
  bool shared = false;  ///< Some rank has something to do.
  std::vector<FileTransfer> transfers;
};
OwnTransfers own_transfers(const std::vector<FileTransfer>& all, int rank);
/// Hears it from the coordinator.
OwnTransfers hear_transfers(Mesh& mesh, Deadline deadline);

/// Sends and receives what it has to, and returns when all ranks have done so. A rank that hears
/// nothing from another for the timeout gives it up; however long a file takes, its sender tells
/// all ranks that it lives. Frames are added to the links' records. Throws Error, where a file
/// cannot be read or written or has come damaged and where another rank ends the run, and
/// NetworkError.
void share_files(Mesh& mesh, const FileSharing& sharing, const ResumePoint& point,
                 const OwnTransfers& own, std::chrono::milliseconds timeout);

}  // namespace duplex::net
