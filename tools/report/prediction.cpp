#include "tools/report/prediction.h"

#include <algorithm>
#include <filesystem>

#include "models/registry.h"
#include "net/wire/link_rate.h"
#include "tools/prediction/equations.h"
#include "tools/prediction/layer_times.h"
#include "tools/run_directory/run_files.h"
#include "tools/scenario/scenario.h"

namespace duplex::tools::reports {
namespace {

struct Alone {
  double grad = 0.0;
  std::string from;
  std::string profile;  ///< Path, if there is one.
  /// Seconds; 0: not known.
  double gradients_down = 0.0, weights_up = 0.0, sample_processor = 0.0;
  bool contended = false;  ///< Its time has what moving bytes took of the processors.
};

std::string profile_of(const RunData& run) {
  return run.layers.empty() ? "" : run.directory + "/" + profile_file;
}

std::optional<Alone> alone_for(const RunData& run, const std::vector<RunData>& all) {
  for (const RunData& other : all) {
    if (other.parallel || !other.grad || other.title != run.title || other.batch != run.batch)
      continue;
    return Alone{*other.grad,
                 "the run " + other.name,
                 profile_of(other),
                 other.gradients_down.value_or(0.0),
                 other.weights_up.value_or(0.0),
                 other.sample_processor.value_or(0.0)};
  }
  if (run.simulated_grad) return Alone{*run.simulated_grad, "what the simulation was given", ""};
  // A worker that exchanges factors computes less than one machine does.
  if (run.factors != Factors::off) return std::nullopt;
  // Where every worker has whole batches, it computes as long as one machine.
  if (run.sync != net::Sync::split && run.samples.empty() && run.grad)
    return Alone{*run.grad, "this run's workers", profile_of(run), 0.0, 0.0, 0.0, true};
  if (run.replayed && run.grad) {
    // The first worker has the largest part of a batch that is split evenly.
    const auto first = run.samples.empty()
                           ? (run.batch + run.all_slots() - 1) / run.all_slots()
                           : run.samples.front() / (run.slots.empty() ? 1 : run.slots.front());
    return Alone{*run.grad * static_cast<double>(run.batch) / static_cast<double>(first),
                 "this run's workers",
                 "",
                 0.0,
                 0.0,
                 0.0,
                 true};
  }
  return std::nullopt;
}

/// Numbers the machines that the run's ranks shared, by rank.
std::vector<int> machines_of(const RunData& run) {
  std::vector<int> machine_of;
  std::vector<std::string> names;
  for (const std::string& address : run.machines) {
    const std::string host = address.substr(0, address.rfind(':'));
    auto found = std::find(names.begin(), names.end(), host);
    if (host.empty()) found = names.end();  // It is not known, and taken for a machine of its own.
    machine_of.push_back(static_cast<int>(found - names.begin()));
    if (found == names.end()) names.push_back(host);
  }
  return machine_of;
}

/// The run once more, simulated.
double simulated_again(const RunData& run, const Alone& alone, double comm, const LinkData* link) {
  const Model model = models::build(run.network, run.options());
  LayerTimes times = alone.profile.empty() ? share_out(alone.grad, model)
                                           : read_profile(alone.profile, model, run.batch);
  // The layers' medians need not add up to the median step; simulate --from scales them, too.
  if (times.sum() > 0.0) times.scale(alone.grad / times.sum());
  SimulationRequest request;
  request.workers = run.workers;
  request.parallel.sync = run.sync;
  request.parallel.server = run.server;
  request.parallel.shards = run.shards;
  request.parallel.overlap = run.overlap;
  request.parallel.semaphore = run.semaphore;
  request.parallel.wire = run.wire;
  request.parallel.factors = run.factors;
  request.parallel.shares = run.samples;
  request.parallel.slots = run.slots;
  if (run.link_rate) request.burst = net::TokenBucket::burst;
  times.batch = run.batch;
  Scenario scenario = Scenario::with_comm(model, times, comm);
  if (run.threads) {  // A replay computes nothing.
    scenario.gradients_down = alone.gradients_down;
    scenario.weights_up = alone.weights_up;
    scenario.sample_processor = alone.sample_processor;
  }
  if (link != nullptr && run.threads && run.cores && !alone.contended) {
    scenario.owner_rate = link->owner_rate.value_or(0.0);
    scenario.moving = {link->send_processor.value_or(0.0), link->receive_processor.value_or(0.0),
                       link->frame_processor.value_or(0.0)};
    scenario.cores = *run.cores;
    scenario.threads = *run.threads;
    if (run.machines.size() == static_cast<std::size_t>(run.ranks))
      request.machine_of = machines_of(run);
  }
  return simulated_speedup(request, scenario,
                           std::clamp<std::int64_t>(static_cast<std::int64_t>(run.steps), 4, 12));
}

}  // namespace

std::optional<Prediction> prediction_of(const RunData& run, const std::vector<RunData>& all,
                                        const std::vector<LinkData>& links) {
  const std::optional<double> throughput = run.throughput();
  if (!run.parallel || run.cut() || !throughput) return std::nullopt;
  const std::optional<Alone> alone = alone_for(run, all);
  if (!alone || alone->grad <= 0.0) return std::nullopt;
  Prediction prediction;
  prediction.alone = alone->from;
  prediction.grad = alone->grad;
  if (const std::optional<RankComm> shortest = run.link_comm()) {
    prediction.comm = shortest->seconds;
    prediction.comm_of = "rank " + std::to_string(shortest->rank);
  }
  const LinkData* link = nullptr;
  for (const LinkData& each : links) {
    if (each.title != run.title || each.link_rate != run.link_rate) continue;
    link = &each;
    prediction.comm = each.comm;
    prediction.comm_of = "the link " + each.name;
  }
  prediction.measured = alone->grad * *throughput;
  if (run.average > 0 || (prediction.comm <= 0.0 && run.workers > 1)) return prediction;
  if (run.factors == Factors::off && run.slots.empty())
    prediction.equation =
        speedup(coded({prediction.comm, alone->grad}, net::wire_of(run.wire, run.sync)), run.sync,
                run.server, run.workers,
                static_cast<double>(std::max<std::uint64_t>(run.steps, 1)) * run.batches_a_step());
  if (prediction.comm > 0.0)
    prediction.simulation = simulated_again(run, *alone, prediction.comm, link);
  return prediction;
}

}  // namespace duplex::tools::reports
