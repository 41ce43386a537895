// The rank source tells which rank of a run this process is, and where all ranks are: the flags, or
// whatever started the process (Slurm, Open MPI, MPICH, or the variables that torchrun sets).
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "net/wire/address.h"

namespace duplex::tools {

/// Returns the value of an environment variable, or null, as std::getenv does.
using Environment = std::function<const char*(const char* name)>;

struct RankFlags {
  std::string nodefile;  ///< Empty: not given.
  int index = -1;        ///< -1: not given.
  bool central = false;  ///< Workers connect to rank 0 alone, so only its address is needed.
  std::vector<int> without = {};  ///< Ranks of the nodefile that are left out.
  /// The slots of a line of the nodefile are one rank's, unless a launcher starts a process for
  /// each of them.
  bool takes_slots = false;
  int slots = 0;  ///< Of each rank that computes; 0: as the nodefile says, else one.
};

struct RankSource {
  int rank = 0;
  /// One for each rank, by rank. An empty host is not known, and not needed.
  std::vector<net::Address> addresses;
  std::vector<int> slots;  ///< Of each rank.
  /// Number of slots that compute on this rank's machine, as far as names or the launcher tell; 1
  /// at least. Before this rank's come those of the ranks before it.
  int computing_here = 1, computing_before = 0;
  bool launched = false;  ///< The launcher may have given each process cores of its own.
  std::string used;       ///< The sources, such as "from Slurm: SLURM_PROCID; ...".

  /// Number of threads for each slot to compute with, at least 1. Slots of one machine share out
  /// its cores, since threads that take turns on a core wait for one another, and a step takes many
  /// times as long. `usable`: cores that this process may use. If a launcher has left it only some
  /// of the `online` ones, the others are for other ranks.
  int threads(int usable, int online) const;
  /// Returns whether the launcher has given this process cores that other ranks do not use.
  bool has_own_cores(int usable, int online) const { return launched && usable < online; }

  std::string str() const;  ///< "rank 2 of 4 (from Slurm: SLURM_PROCID; ...)".
};

/// Finds rank and addresses. --index and --nodefile count where given; --index counts what
/// --without leaves of the nodefile. A rank that is not given comes from the launcher's variables,
/// and so do addresses: for a Slurm step its hosts, for ranks that are all on this machine
/// 127.0.0.1, else, with a central server, MASTER_ADDR for rank 0. Ports count from MASTER_PORT
/// (under torchrun, which listens there itself, from the next), or from default_port. Throws
/// Error(Exit::usage), naming variables and values, if a number is none, if two contradict each
/// other, and if rank or addresses stay unknown.
///
/// All that a launcher's process starts inherits its variables. So a Slurm step of one task a
/// machine does not count if another launcher names more ranks, since the step started mpirun's
/// daemons. And a launcher's run of one process does not count against --index in a longer
/// nodefile, since it started a shell.
RankSource find_rank(const RankFlags& flags, const Environment& environment);

}  // namespace duplex::tools
