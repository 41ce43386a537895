// A run whose network is cut over the ranks, as a simulation plays it.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "layers/parts/part_factors.h"
#include "net/factors/factor_map.h"
#include "tools/plan/parallel.h"
#include "tools/scenario/scenario.h"
#include "tools/simulation/cut_run.h"

namespace duplex::tools {

struct CutScenario {
  std::shared_ptr<const simulation::CutRun> run;
  std::vector<std::size_t> counts;  ///< Elements, by parameter as the wire counts them.
  /// Linear layers that several ranks share, and each one's number in a rank's part, by rank.
  std::vector<PartLinear> linears;
  std::vector<std::vector<std::size_t>> nodes;
  std::vector<net::FactoredLayer> factored;  ///< Those that exchange factors.
  /// The fewest samples of a micro-batch that any rank normalises together; 0: no layer does.
  std::int64_t normalised = 0;
};

/// `parallel` names a strategy that cuts (ParallelSpec::cuts). Throws Error(usage) where the
/// network cannot be cut so.
CutScenario cut_scenario(const Scenario& scenario, const ParallelSpec& parallel, int ranks);

/// Keeps those that a partitioner takes its time for, which does not depend on codings and factors.
/// Any thread may call it.
class CutScenarios {
 public:
  /// The scenario is the same in all calls.
  CutScenario get(const Scenario& scenario, const ParallelSpec& parallel, int ranks);

 private:
  CutScenario dense(const Scenario& scenario, const ParallelSpec& parallel, int ranks);

  std::mutex mutex_;  ///< Guards `kept_`.
  std::map<std::string, CutScenario> kept_;
};

}  // namespace duplex::tools
