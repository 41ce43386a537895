#include "tools/planning/evaluation.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <exception>
#include <functional>
#include <thread>

#include "core/device.h"
#include "core/error.h"
#include "tools/planning/floor.h"
#include "tools/prediction/equations.h"
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

struct Simulated {
  simulation::Outcome outcome;
  std::size_t skipped = 0;  ///< Steps at its start that do not count.
};

/// Simulates spec.steps steps. Fewer do where nothing differs from step to step and two steps in a
/// row took the same time, but for what connections' shares of a port differ by. Where every step
/// ends with an exchange, one more is simulated and left out, since the last takes another time.
Simulated simulated(const Situation& situation, simulation::Spec spec, bool exactly) {
  constexpr double same = 0.01;
  const bool stepwise = spec.sync != net::Sync::none && spec.average == 0;
  const auto run = [&](std::uint64_t steps) {
    spec.steps = steps + (stepwise ? 1 : 0);
    simulation::Outcome outcome = simulation::simulate(spec, nullptr);
    for (auto& each : outcome.steps)
      if (stepwise) each.pop_back();
    return outcome;
  };
  const std::uint64_t all = spec.steps;
  if (!exactly && !situation.varies && stepwise) {
    Simulated few{run(warm_up + 1), warm_up - 1};
    const std::vector<simulation::StepTimes>& first = few.outcome.steps.front();
    const double before = first[warm_up - 1].end - first[warm_up - 2].end;
    const double last = first[warm_up].end - first[warm_up - 1].end;
    if (std::abs(last - before) < same * last) return few;
  }
  return {run(all), std::max<std::size_t>(spec.average, warm_up)};
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
                                                      const Strategy& strategy,
                                                      const simulation::Spec& spec) {
  const ParallelSpec& parallel = strategy.parallel;
  if (parallel.average > 0 || !parallel.slots.empty() || parallel.cuts()) return std::nullopt;
  const Costs costs = costs_on_wire(situation.scenario, spec);
  const double n = strategy.workers(), batches = 16.0 * n;
  if (const auto between = speedup_between(costs, parallel.sync, parallel.server, n, batches))
    return std::pair(between->low, between->high);
  const double only = speedup(costs, parallel.sync, parallel.server, n, batches);
  return std::pair(only, only);
}

Evaluation evaluation_of(const Situation& situation, const Strategy& strategy,
                         simulation::Spec spec, double alone, bool exactly) {
  Evaluation evaluation;
  evaluation.strategy = strategy;
  evaluation.equations = equations_of(situation, strategy, spec);
  const auto [outcome, skipped] = simulated(situation, std::move(spec), exactly);
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
  // Cuts take their time; CutSearch asks for those that it has found.
  if (!strategy.parallel.cuts()) evaluation.normalised = normalised_by(situation, strategy);
  return evaluation;
}

/// None: the network cannot be cut so, or image_floor() is above `slowest`.
std::optional<Evaluation> if_possible(const Situation& situation, const Strategy& strategy,
                                      double alone, bool exactly, double slowest) {
  try {
    simulation::Spec spec = situation.spec_of(strategy, steps_of(situation, strategy, exactly));
    if (slowest < unbounded && image_floor(situation, strategy, spec) > slowest)
      return std::nullopt;
    return evaluation_of(situation, strategy, std::move(spec), alone, exactly);
  } catch (const Error& error) {
    if (!strategy.parallel.cuts() || error.code != Exit::usage) throw;
    return std::nullopt;
  }
}

/// Calls `work` with each number below `count`, on all processors. Throws what the lowest of them
/// has thrown.
void on_all_processors(std::size_t count, const std::function<void(std::size_t)>& work) {
  std::vector<std::exception_ptr> errors(count);
  std::atomic<std::size_t> next{0};
  const auto take = [&] {
    for (std::size_t i; (i = next++) < count;) try {
        work(i);
      } catch (...) {
        errors[i] = std::current_exception();
      }
  };
  std::vector<std::thread> threads;
  for (int i = 1; i < usable_cores() && static_cast<std::size_t>(i) < count; ++i)
    threads.emplace_back(take);
  take();
  for (std::thread& thread : threads) thread.join();
  for (const std::exception_ptr& error : errors)
    if (error) std::rethrow_exception(error);
}

}  // namespace

Evaluation evaluate(const Situation& situation, const Strategy& strategy, double alone,
                    bool exactly) {
  return evaluation_of(situation, strategy,
                       situation.spec_of(strategy, steps_of(situation, strategy, exactly)), alone,
                       exactly);
}

std::vector<std::optional<Evaluation>> evaluate_possible(const Situation& situation,
                                                         const std::vector<Strategy>& strategies,
                                                         double alone, bool exactly,
                                                         double slowest) {
  std::vector<std::optional<Evaluation>> evaluations(strategies.size());
  on_all_processors(strategies.size(), [&](std::size_t i) {
    evaluations[i] = if_possible(situation, strategies[i], alone, exactly, slowest);
  });
  return evaluations;
}

std::optional<std::size_t> one_that_pays(const Situation& situation,
                                         const std::vector<Strategy>& strategies, double alone,
                                         const std::function<bool(const Strategy&)>& counts) {
  std::atomic<std::size_t> paying{strategies.size()};
  on_all_processors(strategies.size(), [&](std::size_t i) {
    if (paying < strategies.size()) return;
    const auto found = if_possible(situation, strategies[i], alone, false, alone);
    if (found && found->speedup > 1.0 && counts(strategies[i])) paying = i;
  });
  if (paying == strategies.size()) return std::nullopt;
  return paying.load();
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

std::vector<std::string> bindings(const Situation& situation,
                                  const std::vector<Evaluation>& evaluations) {
  std::vector<std::string> bound(evaluations.size());
  on_all_processors(evaluations.size(),
                    [&](std::size_t i) { bound[i] = binding(situation, evaluations[i]); });
  return bound;
}

}  // namespace duplex::tools
