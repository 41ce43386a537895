#include "tools/scenario/scenario.h"

#include <algorithm>

#include "core/error.h"
#include "tools/plan/factored_layers.h"
#include "tools/scenario/cut_scenario.h"
#include "tools/simulation/simulation.h"
#include "tools/text/quartiles.h"

namespace duplex::tools {
namespace {

/// With more ranks than this, links are shared anew at so many moments that those within this part
/// of t_grad are taken together.
constexpr int many_ranks = 32;
constexpr double coarse = 1e-3;

/// With more ranks than this, shares are all alike.
constexpr int even_ranks = 128;

/// Operations a second at which a core with AVX2 multiplies factors (bench --codings).
constexpr double usual_factor_rate = 30e9;

/// The slowest and the fastest of eight workers differ by so much in docs/results/wire.md.
constexpr double usual_unfairness = 0.08;

std::vector<std::size_t> counts_of(const Model& model) {
  std::vector<std::size_t> counts;
  for (const ParameterSpec& spec : model.trained())
    counts.push_back(static_cast<std::size_t>(spec.shape.elements()));
  return counts;
}

/// Bytes of all weights on the wire, with the headers of their frames and what protects them.
double wire_bytes(const Model& model, double seal_rate) {
  const net::Protection protection =
      seal_rate > 0.0 ? net::Protection::sealed : net::Protection::none;
  const net::ShardMap map = net::ShardMap::central(counts_of(model), 0);
  double bytes = 0.0;
  for (std::size_t i = 0; i < map.chunks(); ++i)
    bytes += static_cast<double>(net::frame_bytes(protection, map[i].bytes()));
  return bytes;
}

std::vector<simulation::Layer> layers_of(const Scenario& scenario) {
  std::vector<simulation::Layer> layers;
  std::uint32_t next = 0;
  for (std::size_t node = 0; node < scenario.model.nodes().size(); ++node) {
    const Model::Entry& entry = scenario.model.nodes()[node];
    simulation::Layer layer;
    layer.forward = scenario.times.forward[node];
    layer.backward = scenario.times.backward[node];
    if (entry.layer)
      for (const ParameterSpec& parameter : scenario.model.parameters(entry)) {
        if (!parameter.trained) continue;
        layer.parameters.push_back(next++);
        const double part = static_cast<double>(parameter.shape.elements()) /
                            static_cast<double>(scenario.model.trained_parameters());
        layer.upload += part * scenario.weights_up;
        layer.download += part * scenario.gradients_down;
      }
    layers.push_back(std::move(layer));
  }
  return layers;
}

/// Returns the part of a batch's seconds that so many samples take.
double part_of_batch(const Scenario& scenario, std::size_t samples) {
  const auto count = static_cast<std::int64_t>(samples);
  if (scenario.parts && count != scenario.batch)
    return scenario.parts->whole(count) / scenario.parts->whole(scenario.batch);
  return static_cast<double>(samples) / static_cast<double>(scenario.batch);
}

}  // namespace

Scenario Scenario::with_rate(Model model, LayerTimes times, double rate, double seal_rate) {
  if (!(times.sum() > 0.0)) throw Error("no layer of " + model.title() + " takes any time");
  const Costs costs{wire_bytes(model, seal_rate) / rate, times.sum()};
  const std::int64_t batch = times.batch.value_or(32);
  return {std::move(model),
          std::move(times),
          rate,
          0.0,
          seal_rate,
          0.0,
          {},
          0,
          0,
          0.0,
          0.0,
          0.0,
          costs,
          batch};
}

Scenario Scenario::with_comm(Model model, LayerTimes times, double comm, double seal_rate) {
  const double rate = wire_bytes(model, seal_rate) / comm;
  return with_rate(std::move(model), std::move(times), rate, seal_rate);
}

simulation::Spec spec_of(const SimulationRequest& request, const Scenario& scenario, int workers,
                         CutScenarios* cuts) {
  simulation::Spec spec;
  const ParallelSpec& parallel = request.parallel;
  const int servers = parallel.central() ? 1 : 0, ranks = workers + servers;
  spec.topology = parallel.topology(ranks);
  spec.sync = parallel.sync;
  spec.overlap = parallel.overlap;
  spec.semaphore = parallel.semaphore;
  spec.average = parallel.average;
  spec.wire = parallel.wire;
  spec.packed = request.packed;
  spec.shards = parallel.shards;
  if (parallel.cuts()) {
    CutScenario cut = cuts != nullptr ? cuts->get(scenario, parallel, workers)
                                      : cut_scenario(scenario, parallel, workers);
    spec.cut = std::move(cut.run);
    spec.counts = std::move(cut.counts);
    if (!cut.factored.empty()) spec.factors.emplace(std::move(cut.factored));
  } else {
    spec.counts = counts_of(scenario.model);
    spec.layers = layers_of(scenario);
  }
  std::vector<std::size_t> samples;
  for (int worker = 0; worker < workers; ++worker) {
    const auto count = parallel.share(scenario.batch, worker, workers).count;
    spec.part.push_back(part_of_batch(scenario, count / parallel.slots_of(worker)));
    samples.push_back(static_cast<std::size_t>(count));
  }
  std::vector<Model::Linear> factored;
  if (!spec.cut) factored = factored_layers(scenario.model, parallel, samples, "simulate");
  if (!factored.empty()) spec.factors.emplace(of_exchange(factored, samples));
  // The multiplication takes the processors' time in place of this half of backward, where their
  // number is known. Where it is not, backward stays as it is, so that nothing is gained for free.
  if (scenario.cores > 0 && scenario.threads > 0)
    for (const Model::Linear& layer : factored)
      spec.layers[layer.node].backward *= factored_backward;
  // All threads of a rank multiply.
  int slots = parallel.slots_of(0);
  for (int worker = 1; worker < workers; ++worker)
    slots = std::min(slots, parallel.slots_of(worker));
  spec.factor_rate = request.factor_rate.value_or(
      (scenario.factor_rate > 0.0 ? scenario.factor_rate : usual_factor_rate) *
      std::max(scenario.threads, 1) * slots);
  if (!parallel.slots.empty())
    spec.slots.assign(parallel.slots.begin(), parallel.slots.begin() + workers);
  const std::int64_t a_step = parallel.batches_a_step(workers);
  spec.steps = static_cast<std::uint64_t>((request.batches + a_step - 1) / a_step);

  spec.rates.assign(static_cast<std::size_t>(request.workers + servers), scenario.rate);
  for (const auto& [these, rate] : request.links)
    for (int rank = these.first; rank <= these.last; ++rank)
      spec.rates[static_cast<std::size_t>(rank)] = rate;
  spec.rates.resize(static_cast<std::size_t>(ranks));
  spec.losses = request.losses;
  spec.straggler_factor = straggler_factor(request.stragglers, request.seed);
  spec.latency = request.latency;
  spec.owner_rate = scenario.owner_rate;
  spec.seal_rate = scenario.seal_rate;
  if (scenario.cores > 0 && scenario.threads > 0) {
    spec.moving = scenario.moving;
    spec.threads = scenario.threads;
    for (int worker = 0; worker < workers; ++worker)
      spec.reading.push_back(
          scenario.sample_processor *
          static_cast<double>(parallel.share(scenario.batch, worker, workers).count));
    for (int rank = 0; rank < ranks; ++rank)
      spec.machine_of.push_back(
          request.machine_of.empty() ? rank : request.machine_of[static_cast<std::size_t>(rank)]);
    const int machines = *std::max_element(spec.machine_of.begin(), spec.machine_of.end()) + 1;
    spec.cores.assign(static_cast<std::size_t>(machines), scenario.cores);
  }
  spec.burst = request.burst;
  spec.queue = request.queue;
  spec.unfairness = request.unfairness.value_or(ranks > even_ranks ? 0.0 : usual_unfairness);
  spec.seed = request.seed;
  spec.resolution = request.resolution.value_or(ranks > many_ranks ? coarse * scenario.costs.grad
                                                                   : spec.resolution);
  return spec;
}

Costs costs_on_wire(const Scenario& scenario, const simulation::Spec& spec) {
  const net::WireFormat wire = net::wire_of(spec.wire, spec.sync);
  if (!spec.factors || spec.cut) return coded(scenario.costs, wire, spec.packed);
  const auto all = static_cast<double>(scenario.model.trained_parameters());
  double left = all, factors = 0.0;
  for (std::size_t layer = 0; layer < spec.factors->layers().size(); ++layer) {
    const net::FactoredLayer& shape = spec.factors->layers()[layer];
    left -= static_cast<double>(spec.counts[shape.weights] + spec.counts[shape.bias]);
    factors += static_cast<double>(spec.factors->values(layer, 0));
  }
  return factored(scenario.costs, wire, spec.packed, left / all, factors / all,
                  static_cast<double>(spec.factors->workers()));
}

double simulated_speedup(SimulationRequest request, const Scenario& scenario, std::int64_t steps) {
  const int a_step = request.parallel.batches_a_step(request.workers);
  request.batches = steps * a_step;
  const simulation::Outcome outcome =
      simulation::simulate(spec_of(request, scenario, request.workers), nullptr);
  const double grad = scenario.costs.grad;
  if (request.parallel.sync == net::Sync::none) {
    double a_second = 0.0;
    for (const auto& worker : outcome.steps)
      a_second += static_cast<double>(worker.size()) / worker.back().end;
    return grad * a_second;
  }
  std::vector<double> times;
  for (std::size_t i = 2; i < outcome.steps.front().size(); ++i)
    times.push_back(outcome.steps.front()[i].end - outcome.steps.front()[i].begin);
  return a_step * grad / quartiles_of(times).median;
}

}  // namespace duplex::tools
