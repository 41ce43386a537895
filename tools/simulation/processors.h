// The processors of machines in a simulated run. Moving bytes and adding gradients takes processor
// time; where the cores of a machine are busy computing, computing takes so much longer.
#pragma once
#include <vector>

#include "tools/simulation/spec.h"

namespace duplex::tools::simulation {

/// Returns by how much the computing of a step takes longer, where so many threads compute on so
/// many cores, by reading images meanwhile, which takes so many processor seconds. Cores that are
/// idle read first; what is more than they do in a step delays it, on all cores.
double delay_by_reading(double reading, double computing, double threads, double cores);

/// Work that comes while cores of the machine are idle costs nobody. The rest is taken from the
/// ranks that compute there at that moment, in equal parts of time, and they make up for it when
/// what they compute is done.
class Processors {
 public:
  /// `spec` must outlive it.
  explicit Processors(const Spec& spec);

  /// From now on the rank computes, or does not.
  void compute(int rank, bool computes);
  /// The machine of this rank has moved a frame of so many bytes to another rank, or from one.
  void sent(int rank, double bytes) { take(rank, bytes * spec_.moving.send + spec_.moving.frame); }
  void received(int rank, double bytes) {
    take(rank, bytes * spec_.moving.receive + spec_.moving.frame);
  }
  /// The rank begins to compute a step, which takes so many seconds by itself, and its machine
  /// works others to read images meanwhile.
  void read(int rank, double seconds, double computing);
  /// The machine of this rank works so many seconds, with one core.
  void take(int rank, double seconds);
  /// Returns the seconds that the rank still has to compute for what was taken from it, and forgets
  /// them.
  double owed(int rank);

 private:
  struct Machine {
    double cores = 0.0, busy = 0.0;  ///< Of the cores, those that compute.
    double threads = 0.0;            ///< Of all workers.
    int workers = 0;
    std::vector<int> computing;  ///< Ranks.
  };
  double threads_of(int rank) const;  ///< With which a worker computes.
  Machine& machine(int rank) {
    return machines_[static_cast<std::size_t>(spec_.machine_of[static_cast<std::size_t>(rank)])];
  }

  const Spec& spec_;
  std::vector<Machine> machines_;  ///< Empty: nothing takes time from computing.
  std::vector<double> owed_;       ///< By rank.
};

}  // namespace duplex::tools::simulation
