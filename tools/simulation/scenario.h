// What a simulation starts from, in the words of its user; and what that comes to for each number
// of workers.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "layers/model.h"
#include "tools/plan/parallel.h"
#include "tools/prediction/equations.h"
#include "tools/prediction/layer_times.h"
#include "tools/simulation/spec.h"
#include "tools/simulation/stragglers.h"

namespace duplex::tools {

/// The network, its layers' times, and the link.
struct Scenario {
  Model model;
  LayerTimes times;         ///< Of a batch.
  double rate = 0.0;        ///< Bytes a second of a link, in each direction,
  double owner_rate = 0.0;  ///< and of an owner's work; 0: it takes no time.
  Costs costs;              ///< The same for the equations.

  /// `comm`: seconds of one transfer of all weights, which gives the rate. Throws Error where no
  /// layer takes any time.
  static Scenario with_comm(Model model, LayerTimes times, double comm);
  static Scenario with_rate(Model model, LayerTimes times, double rate);
};

/// What is asked of it.
struct SimulationRequest {
  ParallelSpec parallel;
  int workers = 1;
  std::int64_t batches = 128, batch = 32;
  std::uint64_t seed = 1;
  double latency = 50e-6;            ///< Seconds.
  double queue = 1e6;                ///< Bytes; simulation::Spec's.
  std::optional<double> unfairness;  ///< simulation::Spec's; none: as usual for so many ranks.
  std::optional<double> resolution;  ///< Likewise.
  std::vector<Straggler> stragglers;
  std::vector<std::pair<Ranks, double>> links;  ///< Ranks whose links differ, and their rates.
  std::vector<simulation::Loss> losses;
};

/// The run of `workers` of the request's workers: what concerns ranks that are missing then is left
/// out.
simulation::Spec spec_of(const SimulationRequest& request, const Scenario& scenario, int workers);

/// The speedup of all workers over one, whose t_grad is the scenario's, from a simulation of
/// `steps` steps of every worker, 4 or more. Synchronous: from the median of the first worker's
/// steps but the first two, which carry the initial weights and fill the queues; asynchronous: from
/// what all workers do in a second.
double simulated_speedup(SimulationRequest request, const Scenario& scenario, std::int64_t steps);

}  // namespace duplex::tools
