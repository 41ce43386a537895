// The thesis's equations for synchronous training (chapter 4): seconds and speedup from t_comm and
// t_grad.
#pragma once
#include <cstdint>

#include "net/shard_map.h"

namespace duplex::tools {

/// What the equations take. Seconds; c and g in the thesis.
struct Costs {
  double comm = 0.0;  ///< One transfer of all weights over one link.
  double grad = 0.0;  ///< The gradient of one batch on one machine.
};

/// One iteration with a central server: best (4.4), worst (4.7), and their mean (4.11).
double sync_central_best(const Costs& costs, int workers);
double sync_central_worst(const Costs& costs, int workers);
double sync_central(const Costs& costs, int workers);
/// One iteration with a distributed server (4.12).
double sync_distributed(const Costs& costs, int workers);

/// Speedup (4.23) of sync join: an iteration does the work of `workers` batches.
double sync_join_speedup(const Costs& costs, int workers, net::ServerMode server);

}  // namespace duplex::tools
