// The speedup of a run that is simulated for a page.
#pragma once
#include "tools/simulate_flags.h"

namespace duplex::tools::reports {

/// Of `flags.workers` workers over one, whose t_grad is the profile's. Synchronous: from the median
/// of the first worker's steps but the first two, which carry the initial weights and fill the
/// queues; asynchronous: from what all workers do in a second. `steps` of every worker: 4 or more.
double simulated_speedup(SimulateFlags flags, std::int64_t steps);

}  // namespace duplex::tools::reports
