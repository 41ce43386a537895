#include "tools/estimate.h"

namespace duplex::tools {

double sync_central_best(const Costs& costs, int workers) {
  return (workers + 1) * costs.comm + costs.grad;
}

double sync_central_worst(const Costs& costs, int workers) {
  return 2.0 * workers * costs.comm + costs.grad;
}

double sync_central(const Costs& costs, int workers) {
  return (sync_central_best(costs, workers) + sync_central_worst(costs, workers)) / 2.0;
}

double sync_distributed(const Costs& costs, int workers) {
  return 2.0 * costs.comm * (workers - 1) / workers + costs.grad;
}

double sync_join_speedup(const Costs& costs, int workers, net::ServerMode server) {
  const double iteration = server == net::ServerMode::central ? sync_central(costs, workers)
                                                              : sync_distributed(costs, workers);
  return workers * costs.grad / iteration;
}

}  // namespace duplex::tools
