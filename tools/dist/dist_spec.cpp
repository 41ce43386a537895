#include "tools/dist/dist_spec.h"

#include <algorithm>

namespace duplex::tools {

datasets::Share DistSpec::share_of(int rank) const {
  return parallel.share(training.batch, mesh.topology.worker_number(rank),
                        static_cast<int>(mesh.topology.workers().size()));
}

datasets::Share DistSpec::share_of(int rank, int slot) const {
  return parallel.slot_share(training.batch, mesh.topology.worker_number(rank), slot,
                             static_cast<int>(mesh.topology.workers().size()));
}

std::uint64_t DistSpec::step_samples() const {
  const auto workers = static_cast<int>(mesh.topology.workers().size());
  return static_cast<std::uint64_t>(training.batch * parallel.batches_a_step(workers));
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
  spec.warning = mesh.warning;
  for (const int worker : mesh.topology.workers())
    spec.mean.samples.push_back(share_of(worker).count / slots_of(worker));
  spec.mean.slots = parallel.slots;
  return spec;
}

void DistSpec::require_planned(const Model& model) const {
  if (!planned) return;
  const std::string here = model.entry(model.input()).shape.str();
  const std::int64_t parameters = model.trained_parameters();
  if (model.title() == planned->title && here == planned->input &&
      parameters == planned->parameters)
    return;
  const auto text = [](const std::string& name, const std::string& shape, std::int64_t count) {
    return name + " with an input of " + shape + " and " + std::to_string(count) + " parameters";
  };
  throw Error("dist: the plan " + planned->plan + " is for " +
                  text(planned->title, planned->input, planned->parameters) + ", and this is " +
                  text(model.title(), here, parameters) + ": make another plan",
              Exit::usage);
}

}  // namespace duplex::tools
