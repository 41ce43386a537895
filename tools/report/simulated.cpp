#include "tools/report/simulated.h"

#include "tools/simulation/simulation.h"
#include "tools/statistics.h"

namespace duplex::tools::reports {

double simulated_speedup(SimulateFlags flags, std::int64_t steps) {
  const bool split = flags.parallel.splits();
  flags.batches = split ? steps : steps * flags.workers;
  const Situation situation = situation_of(flags);
  const simulation::Outcome outcome =
      simulation::simulate(spec_of(flags, situation, flags.workers), nullptr);
  const double grad = situation.costs.grad;
  if (flags.parallel.sync == "none") {
    double a_second = 0.0;
    for (const auto& worker : outcome.steps)
      a_second += static_cast<double>(worker.size()) / worker.back().end;
    return grad * a_second;
  }
  std::vector<double> times;
  for (std::size_t i = 2; i < outcome.steps.front().size(); ++i)
    times.push_back(outcome.steps.front()[i].end - outcome.steps.front()[i].begin);
  return (split ? 1.0 : flags.workers) * grad / spread_of(times).median;
}

}  // namespace duplex::tools::reports
