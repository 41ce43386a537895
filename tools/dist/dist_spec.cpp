#include "tools/dist/dist_spec.h"

#include <algorithm>

namespace duplex::tools {

datasets::Share DistSpec::share_of(int rank) const {
  return parallel.share(training.batch, mesh.topology.worker_number(rank),
                        static_cast<int>(mesh.topology.workers().size()));
}

std::uint64_t DistSpec::step_samples() const {
  const auto batch = static_cast<std::uint64_t>(training.batch);
  return parallel.splits() ? batch : batch * mesh.topology.workers().size();
}

net::ExchangeSpec DistSpec::exchange() const {
  net::ExchangeSpec spec;
  spec.sync = parallel.sync;
  spec.shards = parallel.shards;
  spec.average = parallel.average > 0;
  spec.round = std::max<std::uint64_t>(parallel.average, 1);
  spec.overlap = parallel.overlap;
  spec.semaphore = parallel.semaphore;
  spec.wire = parallel.wire;
  spec.trace_steps = trace_steps;
  spec.ledger_frames = ledger;
  spec.optimiser = training.optimiser;
  spec.rate = training.rate;
  spec.timeout = mesh.timeout;
  spec.log = mesh.log;
  for (const int worker : mesh.topology.workers()) spec.samples.push_back(share_of(worker).count);
  return spec;
}

}  // namespace duplex::tools
