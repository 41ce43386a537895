// A scenario is what a simulation starts from, in the words of its user; a specification is what
// that comes to for each number of workers.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "layers/model.h"
#include "tools/plan/parallel.h"
#include "tools/prediction/equations.h"
#include "tools/prediction/layer_times.h"
#include "tools/prediction/part_costs.h"
#include "tools/scenario/stragglers.h"
#include "tools/simulation/spec.h"

namespace duplex::tools {

class CutScenarios;

/// The network, its layers' times, and the link.
struct Scenario {
  Model model;
  LayerTimes times;           ///< Seconds of a batch.
  double rate = 0.0;          ///< Bytes a second of a link, in each direction.
  double owner_rate = 0.0;    ///< Bytes a second of an owner's work; 0: it takes no time.
  double seal_rate = 0.0;     ///< See simulation::Spec; 0: frames are plain.
  double factor_rate = 0.0;   ///< Operations a second of a thread; 0: those of a core with AVX2.
  simulation::Moving moving;  ///< What moving bytes takes of the processors.
  int cores = 0;    ///< Of a machine; 0: what is moved and added takes none from computing.
  int threads = 0;  ///< That compute on a rank, on these cores.
  /// Seconds to bring all gradients into plain memory, as they cross the wire, and all weights
  /// back.
  double gradients_down = 0.0, weights_up = 0.0;
  double sample_processor = 0.0;  ///< Processor seconds to read an image.
  Costs costs;                    ///< The same costs for the equations.
  std::int64_t batch = 32;  ///< Images of the batch that the times are of; split shares them out.
  /// The seconds of layers that compute some of the samples or channels; null: they are in
  /// proportion to these.
  std::shared_ptr<const PartCosts> parts = nullptr;

  /// `comm`: seconds of one transfer of all weights, which gives the rate. The batch is that of the
  /// times, where that is known. Throws Error if no layer takes any time.
  static Scenario with_comm(Model model, LayerTimes times, double comm, double seal_rate = 0.0);
  static Scenario with_rate(Model model, LayerTimes times, double rate, double seal_rate = 0.0);
};

/// The run that is asked for.
struct SimulationRequest {
  ParallelSpec parallel;
  int workers = 1;
  std::int64_t batches = 128;
  std::uint64_t seed = 1;
  double latency = 50e-6;           ///< Seconds.
  double burst = 0.0, queue = 1e6;  ///< Bytes; see simulation::Spec.
  net::PackedParts packed;          ///< For --wire lossless.
  /// See simulation::Spec; none: as usual for the threads that a rank has.
  std::optional<double> factor_rate;
  std::optional<double> unfairness;  ///< See simulation::Spec; none: as usual for so many ranks.
  std::optional<double> resolution;  ///< See simulation::Spec; none: as usual for so many ranks.
  std::vector<Straggler> stragglers;
  std::vector<std::pair<Ranks, double>> links;  ///< Ranks whose links differ, and their rates.
  std::vector<simulation::Loss> losses;
  std::vector<int> machine_of;  ///< By rank; empty: each has a machine of its own.
};

/// The run of `workers` of the request's workers, without the settings of ranks that are missing
/// then. `cuts`: where the network is cut, has it done; null: that is not kept. Throws Error(usage)
/// where it cannot be cut so.
simulation::Spec spec_of(const SimulationRequest& request, const Scenario& scenario, int workers,
                         CutScenarios* cuts = nullptr);

/// The scenario's costs with what a run has on the wire, for the equations (coded(), factored()).
Costs costs_on_wire(const Scenario& scenario, const simulation::Spec& spec);

/// The speedup of all workers over one, whose t_grad is the scenario's, from a simulation of
/// `steps` steps of every worker, 4 or more. In synchronous runs it follows from the median of the
/// first worker's steps, without the first two, which carry the initial weights and fill the
/// queues; in asynchronous ones, from the steps that all workers do in a second.
double simulated_speedup(SimulationRequest request, const Scenario& scenario, std::int64_t steps);

}  // namespace duplex::tools
