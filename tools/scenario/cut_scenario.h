// A run whose network is cut over the ranks, as a simulation plays it.
#pragma once
#include <cstddef>
#include <memory>
#include <vector>

#include "tools/plan/parallel.h"
#include "tools/scenario/scenario.h"
#include "tools/simulation/cut_run.h"

namespace duplex::tools {

struct CutScenario {
  std::shared_ptr<const simulation::CutRun> run;
  std::vector<std::size_t> counts;  ///< Elements, by parameter as the wire counts them.
};

/// `parallel` names a strategy that cuts (ParallelSpec::cuts). Throws Error(usage) where the
/// network cannot be cut so.
CutScenario cut_scenario(const Scenario& scenario, const ParallelSpec& parallel, int ranks);

}  // namespace duplex::tools
