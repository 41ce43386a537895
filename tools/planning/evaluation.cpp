#include "tools/planning/evaluation.h"

#include <algorithm>
#include <atomic>
#include <set>
#include <thread>
#include <tuple>

#include "core/device.h"
#include "core/error.h"
#include "tools/prediction/equations.h"
#include "tools/simulation/factors.h"
#include "tools/simulation/processors.h"
#include "tools/simulation/simulation.h"

namespace duplex::tools {
namespace {

/// Steps at the start that do not count: they carry the first weights and fill the queues.
constexpr std::uint64_t warm_up = 2;

/// Steps of every worker that are simulated. Where chance has its part, there are more of them.
std::uint64_t steps_of(const Situation& situation, const Strategy& strategy, bool exactly) {
  const std::uint64_t round = std::max<std::uint64_t>(strategy.parallel.average, 1);
  std::uint64_t rounds = situation.varies ? 40 : strategy.parallel.sync == net::Sync::none ? 14 : 6;
  if (round > 1) rounds = situation.varies ? 12 : 4;
  if (exactly) rounds *= 3;
  return (round > 1 ? round : warm_up) + rounds * round;
}

/// Steps that all workers together do in a second, behind those that do not count.
double steps_a_second(const std::vector<std::vector<simulation::StepTimes>>& workers,
                      std::size_t skipped) {
  double sum = 0.0;
  for (const auto& steps : workers)
    sum +=
        static_cast<double>(steps.size() - skipped) / (steps.back().end - steps[skipped - 1].end);
  return sum;
}

std::optional<std::pair<double, double>> equations_of(const Situation& situation,
                                                      const Strategy& strategy) {
  const ParallelSpec& parallel = strategy.parallel;
  if (parallel.average > 0 || !parallel.slots.empty() || parallel.cuts()) return std::nullopt;
  const Costs costs = costs_on_wire(situation.scenario, situation.spec_of(strategy, 1));
  const double n = strategy.workers(), batches = 16.0 * n;
  if (const auto between = speedup_between(costs, parallel.sync, parallel.server, n, batches))
    return std::pair(between->low, between->high);
  const double only = speedup(costs, parallel.sync, parallel.server, n, batches);
  return std::pair(only, only);
}

}  // namespace

Evaluation evaluate(const Situation& situation, const Strategy& strategy, double alone,
                    bool exactly) {
  const std::uint64_t steps = steps_of(situation, strategy, exactly);
  const simulation::Outcome outcome =
      simulation::simulate(situation.spec_of(strategy, steps), nullptr);
  const auto skipped =
      static_cast<std::size_t>(std::max<std::uint64_t>(strategy.parallel.average, warm_up));
  Evaluation evaluation;
  evaluation.strategy = strategy;
  const auto images = static_cast<double>(situation.scenario.batch);
  const bool asynchronous = strategy.parallel.sync == net::Sync::none;
  // In a synchronous step all slots of all workers do a batch each, or one between them.
  const double a_second = asynchronous ? steps_a_second(outcome.steps, skipped)
                                       : steps_a_second({outcome.steps.front()}, skipped) *
                                             strategy.parallel.batches_a_step(strategy.workers());
  evaluation.image = 1.0 / (a_second * images);
  evaluation.speedup = alone / evaluation.image;
  const std::vector<simulation::StepTimes>& first = outcome.steps.front();
  const auto counted = static_cast<double>(first.size() - skipped);
  evaluation.step = (first.back().end - first[skipped - 1].end) / counted;
  for (std::size_t i = skipped; i < first.size(); ++i) {
    evaluation.computing += first[i].computing / counted;
    evaluation.awaiting += first[i].awaiting / counted;
  }
  evaluation.equations = equations_of(situation, strategy);
  // Cuts take their time; CutSearch asks for those that it has found.
  if (!strategy.parallel.cuts()) evaluation.normalised = normalised_by(situation, strategy);
  return evaluation;
}

std::vector<std::optional<Evaluation>> evaluate_possible(const Situation& situation,
                                                         const std::vector<Strategy>& strategies,
                                                         double alone, bool exactly) {
  std::vector<std::optional<Evaluation>> evaluations(strategies.size());
  std::vector<std::exception_ptr> errors(strategies.size());
  std::atomic<std::size_t> next{0};
  const auto work = [&] {
    for (std::size_t i; (i = next++) < strategies.size();) try {
        evaluations[i] = evaluate(situation, strategies[i], alone, exactly);
      } catch (const Error& error) {
        if (!strategies[i].parallel.cuts() || error.code != Exit::usage)
          errors[i] = std::current_exception();
      } catch (...) {
        errors[i] = std::current_exception();
      }
  };
  std::vector<std::thread> threads;
  for (int i = 1; i < usable_cores(); ++i) threads.emplace_back(work);
  work();
  for (std::thread& thread : threads) thread.join();
  for (const std::exception_ptr& error : errors)
    if (error) std::rethrow_exception(error);
  return evaluations;
}

std::int64_t normalised_by(const Situation& situation, const Strategy& strategy) {
  const Scenario& scenario = situation.scenario;
  if (strategy.parallel.cuts())
    return situation.cuts->get(scenario, strategy.parallel, strategy.workers()).normalised;
  const Model& model = scenario.model;
  const bool normalises =
      std::any_of(model.nodes().begin(), model.nodes().end(), [&](const Model::Entry& entry) {
        if (!entry.layer) return false;
        const std::vector<ParameterSpec> parameters = model.parameters(entry);
        return std::any_of(parameters.begin(), parameters.end(),
                           [](const ParameterSpec& each) { return !each.trained; });
      });
  if (!normalises) return 0;
  std::int64_t fewest = scenario.batch;
  for (int worker = 0; worker < strategy.workers(); ++worker)
    fewest = std::min(
        fewest, strategy.parallel.slot_share(scenario.batch, worker, 0, strategy.workers()).count);
  return fewest;
}

bool Evaluation::normalises_few() const {
  // Below about 8 samples a batch's statistics are no longer those of the data (Wu and He, Group
  // Normalization, 2018). Data parallelism leaves that to its user, who chooses the batch.
  constexpr std::int64_t few = 8;
  return strategy.parallel.cuts() && normalised > 0 && normalised < few;
}

double image_alone(const Situation& situation, int machine) {
  if (situation.machines[static_cast<std::size_t>(machine)].slots > 1)
    return evaluate(situation, {*situation.on({}, {machine}), {machine}}, 1.0, false).image;
  const Scenario& scenario = situation.scenario;
  const auto batch = static_cast<double>(scenario.batch);
  double step = scenario.costs.grad * situation.slowness(machine);
  if (scenario.cores > 0 && scenario.threads > 0)
    step += simulation::delay_by_reading(scenario.sample_processor * batch, step, scenario.threads,
                                         scenario.cores);
  return step / batch;
}

namespace {

/// The most that any rank sends and receives where the network is cut: maps and their gradients,
/// and of the parameters that several ranks have gradients and weights.
StepBytes bytes_of_cut(const simulation::Spec& spec) {
  const simulation::CutRun& cut = *spec.cut;
  const auto size = static_cast<std::size_t>(spec.topology.size);
  std::vector<double> out(size, 0.0), in(size, 0.0);
  const auto cross = [&](int from, int to, net::Coding coding, net::Values what,
                         std::size_t count) {
    const auto bytes = static_cast<double>(
        net::frame_bytes(spec.protection(), net::expected_bytes(coding, what, count, spec.packed)));
    out[static_cast<std::size_t>(from)] += bytes;
    in[static_cast<std::size_t>(to)] += bytes;
  };
  for (const net::MapRoute& route : cut.routes)
    for (std::uint64_t m = 0; m < cut.micro_batches; ++m) {
      cross(route.from, route.to, net::Coding::float32, net::Values::gradient, route.elements);
      if (route.gradient)
        cross(route.to, route.from, net::Coding::float32, net::Values::gradient, route.elements);
    }
  const net::ShardMap map =
      spec.topology.shard_map(spec.counts, spec.shards, spec.chunk_bytes, cut.members);
  for (std::size_t layer = 0; spec.factors && layer < spec.factors->layers().size(); ++layer)
    for (int from = 0; from < spec.topology.size; ++from)
      for (int to = 0; to < spec.topology.size; ++to)
        for (const net::Chunk& piece : spec.factors->pieces(layer, from))
          if (to != from && spec.factors->trains(to, layer))
            cross(from, to, spec.wire.gradients, net::Values::gradient, piece.count);
  for (std::size_t i = 0; i < map.chunks(); ++i)
    for (const int member : *map.members(map[i].parameter)) {
      if (member == map[i].owner) continue;
      if (spec.factors && spec.factors->layer_of(map[i].parameter)) continue;
      cross(member, map[i].owner, spec.wire.gradients, net::Values::gradient, map[i].count);
      cross(map[i].owner, member, spec.wire.weights, net::Values::weights, map[i].count);
    }
  StepBytes bytes;
  bytes.worker_out = *std::max_element(out.begin(), out.end());
  bytes.worker_in = *std::max_element(in.begin(), in.end());
  return bytes;
}

}  // namespace

StepBytes step_bytes(const Situation& situation, const Strategy& strategy) {
  const simulation::Spec spec = situation.spec_of(strategy, 1);
  if (spec.cut) return bytes_of_cut(spec);
  const net::ShardMap map = spec.topology.shard_map(spec.counts, spec.shards, spec.chunk_bytes);
  const auto size = static_cast<std::size_t>(spec.topology.size);
  // The bytes of one transfer of gradients, and of weights: by owner, and all together.
  struct Transfer {
    std::vector<double> owned;
    double all = 0.0;
  } gradients{std::vector<double>(size), 0.0}, weights = gradients;
  const net::WireFormat wire = net::wire_of(spec.wire, spec.sync);
  for (std::size_t i = 0; i < map.chunks(); ++i) {
    if (spec.factors && spec.factors->layer_of(map[i].parameter)) continue;
    for (auto [transfer, coding, what] :
         {std::tuple(&gradients, wire.gradients, net::Values::gradient),
          std::tuple(&weights, wire.weights, net::Values::weights)}) {
      const auto bytes = static_cast<double>(net::frame_bytes(
          spec.protection(), net::expected_bytes(coding, what, map[i].count, spec.packed)));
      transfer->owned[static_cast<std::size_t>(map[i].owner)] += bytes;
      transfer->all += bytes;
    }
  }
  // Gradients go to every owner, weights come from it; an owner has as many of either with each
  // worker but itself.
  const auto workers = static_cast<double>(strategy.workers());
  const double steps = static_cast<double>(std::max<std::uint64_t>(strategy.parallel.average, 1));
  StepBytes bytes;
  for (const int worker : spec.topology.workers()) {
    const auto of = [&](const Transfer& to_others, const Transfer& to_it) {
      const auto own = static_cast<std::size_t>(worker);
      return (to_others.all - to_others.owned[own] + (workers - 1.0) * to_it.owned[own]) / steps;
    };
    const int own_number = spec.topology.worker_number(worker);
    double factors_in = 0.0;
    for (int other = 0; other < strategy.workers(); ++other)
      if (other != own_number) factors_in += simulation::factor_bytes(spec, other);
    const double factors_out = (workers - 1.0) * simulation::factor_bytes(spec, own_number);
    bytes.worker_out = std::max(bytes.worker_out, of(gradients, weights) + factors_out);
    bytes.worker_in = std::max(bytes.worker_in, of(weights, gradients) + factors_in);
  }
  if (strategy.parallel.central()) {
    bytes.worker_out = gradients.all / steps;
    bytes.worker_in = weights.all / steps;
    bytes.server_out = workers * bytes.worker_in;
    bytes.server_in = workers * bytes.worker_out;
  }
  return bytes;
}

std::string binding(const Situation& situation, const Evaluation& evaluation) {
  constexpr double by = 1.1, difference = 1e-3;
  const Strategy& strategy = evaluation.strategy;
  std::string what = "nothing";
  double least = evaluate(situation, strategy, 1.0, false).image * (1.0 - difference);
  const auto try_it = [&](const std::string& name, const Situation& faster) {
    const double image = evaluate(faster, strategy, 1.0, false).image;
    if (image >= least) return;
    least = image;
    what = name;
  };
  const auto change = [&](const std::string& name, bool links, const std::vector<int>& machines) {
    Situation faster = situation;
    for (const int machine : machines) {
      Machine& changed = faster.machines[static_cast<std::size_t>(machine)];
      (links ? changed.rate : changed.speed) *= by;
    }
    try_it(name, faster);
  };
  const bool central = strategy.parallel.central();
  const std::vector<int> workers(strategy.machines.begin() + (central ? 1 : 0),
                                 strategy.machines.end());
  change("computing", false, workers);
  change(central ? "the workers' links" : "the links", true, workers);
  if (central) change("the server's link", true, {strategy.machines.front()});
  if (situation.scenario.owner_rate > 0.0) {
    Situation faster = situation;
    faster.scenario.owner_rate *= by;
    try_it("the owners' work", faster);
  }
  // One machine alone counts where it is all that matters.
  if (!situation.is_uneven()) return what;
  const bool computing = what == "computing";
  if (!computing && what != "the links" && what != "the workers' links") return what;
  least *= 1.0 + difference;
  for (const int machine : workers)
    change("machine " + std::to_string(machine) + (computing ? "'s computing" : "'s link"),
           !computing, {machine});
  return what;
}

}  // namespace duplex::tools
