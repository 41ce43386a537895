#include "tools/report/prediction.h"

#include <algorithm>
#include <filesystem>

#include "models/registry.h"
#include "tools/equations.h"
#include "tools/report/simulated.h"

namespace duplex::tools::reports {
namespace {

struct Alone {
  double grad = 0.0;
  std::string from;
  std::string profile;  ///< Path, if there is one.
};

std::optional<Alone> alone_for(const RunData& run, const std::vector<RunData>& all) {
  for (const RunData& other : all) {
    if (other.parallel || !other.grad || other.title != run.title || other.batch != run.batch)
      continue;
    const std::string profile = other.directory + "/profile.json";
    return Alone{*other.grad, "the run " + other.name, other.layers.empty() ? "" : profile};
  }
  if (run.simulated_grad) return Alone{*run.simulated_grad, "what the simulation was given", ""};
  // Where every worker has whole batches, it computes as long as one machine.
  if (run.sync != net::Sync::split && run.grad) return Alone{*run.grad, "this run's workers", ""};
  if (run.replayed && run.grad) {
    // Of a split batch the first worker has the largest part.
    const auto largest = (run.batch + run.workers - 1) / run.workers;
    return Alone{*run.grad * static_cast<double>(run.batch) / static_cast<double>(largest),
                 "this run's workers", ""};
  }
  return std::nullopt;
}

/// The run once more, simulated.
double simulated_again(const RunData& run, const Alone& alone, double comm) {
  SimulateFlags flags;
  flags.model.net = run.network;
  flags.model.options = run.options();
  if (alone.profile.empty())
    flags.grad = alone.grad;
  else
    flags.profile = alone.profile;
  flags.comm = comm;
  flags.workers = run.workers;
  flags.batch = run.batch;
  flags.parallel.sync = net::name_of(run.sync);
  flags.parallel.server = net::name_of(run.server);
  flags.parallel.shards = net::name_of(run.shards);
  flags.parallel.overlap = run.overlap ? "on" : "off";
  flags.parallel.semaphore = run.semaphore ? "on" : "off";
  return simulated_speedup(flags,
                           std::clamp<std::int64_t>(static_cast<std::int64_t>(run.steps), 4, 12));
}

}  // namespace

std::optional<Prediction> prediction_of(const RunData& run, const std::vector<RunData>& all,
                                        const std::vector<LinkData>& links) {
  const std::optional<double> throughput = run.throughput();
  if (!run.parallel || !throughput) return std::nullopt;
  const std::optional<Alone> alone = alone_for(run, all);
  if (!alone || alone->grad <= 0.0) return std::nullopt;
  Prediction prediction;
  prediction.alone = alone->from;
  prediction.grad = alone->grad;
  prediction.comm = run.link_comm().value_or(0.0);
  for (const LinkData& link : links)
    if (link.title == run.title) prediction.comm = link.comm;
  prediction.measured = alone->grad * *throughput;
  if (run.averages || (prediction.comm <= 0.0 && run.workers > 1)) return prediction;
  prediction.equation =
      speedup({prediction.comm, alone->grad}, run.sync, run.server, run.workers,
              static_cast<double>(std::max<std::uint64_t>(run.steps, 1)) * run.batches_a_step());
  if (prediction.comm > 0.0) prediction.simulation = simulated_again(run, *alone, prediction.comm);
  return prediction;
}

}  // namespace duplex::tools::reports
