// Which rank of a run this process is, and where all ranks are: from flags, or from what started
// the process (Slurm, Open MPI, MPICH, or the variables that torchrun sets).
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "net/wire/address.h"

namespace duplex::tools {

/// The value of an environment variable, or null: std::getenv.
using Environment = std::function<const char*(const char* name)>;

struct RankFlags {
  std::string nodefile;  ///< Empty: not given.
  int index = -1;        ///< -1: not given.
  bool central = false;  ///< Workers connect to rank 0 alone, so only its address is needed.
};

struct RankSource {
  int rank = 0;
  /// By rank, one for each. An empty host: not known, and not needed.
  std::vector<net::Address> addresses;
  /// Ranks that compute on this rank's machine, as far as names or the launcher tell: 1 at least.
  int computing_here = 1;
  bool launched = false;  ///< By one that may have given each of its processes cores of its own.
  std::string used;       ///< What told so: "from Slurm: SLURM_PROCID; ...".

  /// For this rank to compute with, at least 1: ranks of one machine share out its cores, since
  /// threads that take turns on a core wait for one another, and a step takes many times as long.
  /// `usable`: cores that this process may use; where a launcher has left it some of the `online`
  /// ones, the others are for other ranks.
  int threads(int usable, int online) const;

  std::string str() const;  ///< "rank 2 of 4 (from Slurm: SLURM_PROCID; ...)"
};

/// --index and --nodefile where given. A rank that is not given comes from the launcher's
/// variables; so do addresses: of a Slurm step its hosts, of ranks that are all on this machine
/// 127.0.0.1, else, with a central server, MASTER_ADDR for rank 0. Ports count from MASTER_PORT
/// (under torchrun, which listens there itself, from the next), or from default_port. Throws
/// Error(Exit::usage), naming variables and values, for a number that is none, for two that
/// contradict each other, and where rank or addresses stay unknown.
///
/// All that a launcher's process starts inherits its variables. So a Slurm step of one task a
/// machine does not count where another launcher names more ranks: it started mpirun's daemons. And
/// a launcher's world of one does not count against --index in a longer nodefile: it started a
/// shell.
RankSource find_rank(const RankFlags& flags, const Environment& environment);

}  // namespace duplex::tools
