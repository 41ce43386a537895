// A rank record is a file that a rank holds a lock on for as long as it runs, so that `duplex
// launch stop` finds it. The kernel tells who holds the lock, so the number of a process that is
// gone is never signalled, and no list of processes has to be searched.
#pragma once
#include <sys/types.h>

#include <string>
#include <vector>

#include "datasets/file.h"

namespace duplex::tools {

/// The folder of this user's records: /tmp/duplex-UID, with the user's number outside of any user
/// namespace. It is not in the home folder, which several
/// machines may share, and does not go by TMPDIR, which may differ between a rank and who stops it.
std::string record_folder();

/// A nodefile's name in records: its absolute, lexically normal path.
std::string record_name(const std::string& nodefile);

/// This process's record, which is removed at the end. If there can be none, trouble() says why,
/// and the rank is not found. A process has one at a time, and must not open the file otherwise:
/// closing it anywhere in the process gives the lock back. A forked child does not hold the lock.
class RankRecord {
 public:
  /// `nodefiles`: those by which the rank is found.
  RankRecord(const std::vector<std::string>& nodefiles, int rank,
             const std::string& folder = record_folder());
  ~RankRecord();
  RankRecord(const RankRecord&) = delete;
  RankRecord& operator=(const RankRecord&) = delete;

  /// Empty if the rank is recorded.
  const std::string& trouble() const { return trouble_; }

 private:
  void write(const datasets::Descriptor& folder, const std::string& text);

  std::string path_, trouble_;
  int file_ = -1;
  int folder_ = -1;  ///< Locked too, so that systemd-tmpfiles leaves old records alone.
};

/// A rank of this user that runs on this machine.
struct RunningRank {
  int rank = -1;
  pid_t process = 0;  ///< 0: this process cannot signal it, since it runs in another pid namespace.
};

/// The running ranks that have the nodefile in their records, by rank. Removes the records of ranks
/// that have ended, whatever their nodefile. Throws Error if the folder is a link, not this user's,
/// or accessible to others.
std::vector<RunningRank> running_ranks(const std::string& nodefile,
                                       const std::string& folder = record_folder());

}  // namespace duplex::tools
