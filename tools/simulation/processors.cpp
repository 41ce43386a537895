#include "tools/simulation/processors.h"

#include <algorithm>
#include <utility>

namespace duplex::tools::simulation {

double delay_by_reading(double reading, double computing, double threads, double cores) {
  const double idle = std::max(0.0, cores - threads);
  return std::max(0.0, reading - idle * computing) / cores;
}

Processors::Processors(const Spec& spec) : spec_(spec) {
  for (const double cores : spec.cores) machines_.push_back({cores, 0.0, 0.0, 0, {}});
  if (!machines_.empty())
    for (const int rank : spec.topology.workers()) {
      ++machine(rank).workers;
      machine(rank).threads += threads_of(rank);
    }
  owed_.assign(spec.machine_of.size(), 0.0);
}

void Processors::compute(int rank, bool computes) {
  if (machines_.empty()) return;
  Machine& on = machine(rank);
  const auto found = std::find(on.computing.begin(), on.computing.end(), rank);
  if ((found != on.computing.end()) == computes) return;
  if (computes)
    on.computing.push_back(rank);
  else
    on.computing.erase(found);
  on.busy = 0.0;
  for (const int each : on.computing) on.busy += threads_of(each);
}

double Processors::threads_of(int rank) const {
  return spec_.threads *
         spec_.slots_of(static_cast<std::size_t>(spec_.topology.worker_number(rank)));
}

void Processors::read(int rank, double seconds, double computing) {
  if (machines_.empty()) return;
  // Whether the machine's other workers compute at this moment is chance; in every step they do,
  // and have images of their own to read.
  const Machine& on = machine(rank);
  owed_[static_cast<std::size_t>(rank)] +=
      delay_by_reading(seconds * on.workers, computing, on.threads, on.cores);
}

void Processors::take(int rank, double seconds) {
  if (machines_.empty() || seconds <= 0.0) return;
  const Machine& on = machine(rank);
  const double idle = std::clamp(on.cores - on.busy, 0.0, 1.0);
  if (on.computing.empty() || idle == 1.0) return;
  for (const int each : on.computing)
    owed_[static_cast<std::size_t>(each)] += seconds * (1.0 - idle) / std::min(on.busy, on.cores);
}

double Processors::owed(int rank) {
  if (machines_.empty()) return 0.0;
  return std::exchange(owed_[static_cast<std::size_t>(rank)], 0.0);
}

}  // namespace duplex::tools::simulation
