// The situation that a plan is made for: a network with its seconds of computing, and machines.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tools/planning/strategy.h"
#include "tools/scenario/cut_scenario.h"
#include "tools/scenario/scenario.h"
#include "tools/simulation/spec.h"

namespace duplex::tools {

struct Machine {
  double rate = 0.0;       ///< Bytes a second of its link, in each direction.
  double speed = 1.0;      ///< Computing takes 1 / speed of what the scenario and stragglers say.
  int host = 0;            ///< Machines of one host share its processors.
  std::size_t memory = 0;  ///< Bytes that it may have; 0: not known.
  int slots = 1;           ///< On each of them it computes as fast.
};

struct Situation {
  Scenario scenario;          ///< Of a machine that is no straggler.
  SimulationRequest request;  ///< All else but how and how many train.
  std::vector<Machine> machines;
  /// The factor by which computing takes longer on a machine in a step; empty: 1.
  std::function<double(int machine, std::uint64_t step)> straggler;
  bool varies = false;  ///< Whether some straggler differs from step to step.
  /// The most bytes of memory that a machine needs for a strategy, or alone for one without
  /// machines. Empty: memory is not asked about.
  std::function<std::size_t(const Strategy&)> memory;
  std::size_t memory_limit = 0;  ///< The bytes that each machine has of it; 0: as it says itself.
  /// Keeps cuts of the scenario's network.
  std::shared_ptr<CutScenarios> cuts = std::make_shared<CutScenarios>();

  /// So many machines, with the links and stragglers of the request.
  static Situation of(Scenario scenario, SimulationRequest request, int machines);

  /// Gives the machines whose links the request names those rates, whatever rates they have.
  void take_links();
  /// The least that a machine of the strategy has of memory; the most that one has, for one without
  /// machines. 0: not known.
  std::size_t memory_of(const Strategy& strategy) const;
  /// The bytes by which one of its machines has too little memory for a strategy; 0: none has, or
  /// memory is not asked about.
  std::size_t lacking(const Strategy& strategy) const;
  /// The factor of a machine's computing, with its speed, on the average over many steps.
  double slowness(int machine) const;
  /// Whether machines compute or send at different speeds.
  bool is_uneven() const;
  /// The way as it is on these machines, by rank, whose workers have the slots that they have;
  /// none: it takes no slots, and they have several.
  std::optional<ParallelSpec> on(ParallelSpec parallel, const std::vector<int>& ranks) const;
  /// The simulation of so many steps of every worker.
  simulation::Spec spec_of(const Strategy& strategy, std::uint64_t steps) const;
};

}  // namespace duplex::tools
