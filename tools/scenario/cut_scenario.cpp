#include "tools/scenario/cut_scenario.h"

#include <algorithm>
#include <string>
#include <utility>

#include "core/error.h"
#include "layers/parts/crossing.h"
#include "tools/parts/cut_part.h"
#include "tools/parts/part_times.h"
#include "tools/plan/factored_layers.h"

namespace duplex::tools {
namespace {

using simulation::PartLayer;
using simulation::RankPart;

/// Numbers of the whole network's nodes, by name.
std::map<std::string, int> nodes_of(const Model& model) {
  std::map<std::string, int> nodes;
  for (std::size_t node = 1; node < model.nodes().size(); ++node)
    nodes[model.nodes()[node].name] = static_cast<int>(node);
  return nodes;
}

/// Says which spans each layer's parameters are in. A span of several parameters is pushed when the
/// last of them has its gradient.
void add_spans(std::vector<PartLayer>& layers, const Model& part,
               const std::vector<std::vector<SpanPlace>>& places) {
  std::vector<std::size_t> layer_of;  // By trained parameter of the part.
  for (std::size_t node = 0; node < part.nodes().size(); ++node)
    for (const ParameterSpec& spec : part.parameters(part.nodes()[node]))
      if (spec.trained) layer_of.push_back(node);
  for (std::size_t span = 0; span < places.size(); ++span) {
    std::size_t first = part.nodes().size();
    for (const SpanPlace& place : places[span]) {
      const std::size_t layer = layer_of[place.parameter];
      layers[layer].awaits.push_back(span);
      first = std::min(first, layer);
    }
    if (!places[span].empty()) layers[first].pushes.push_back(span);
  }
}

/// The fewest samples that layers with running statistics have; 0: there are none of these. Throws
/// Error(usage) where one of them has a single value of each channel, with which it cannot train.
std::int64_t normalised_by(const Model& part) {
  std::int64_t fewest = 0;
  for (const Model::Entry& entry : part.nodes()) {
    if (!entry.layer) continue;
    const std::vector<ParameterSpec> specs = part.parameters(entry);
    const bool normalises = std::any_of(specs.begin(), specs.end(),
                                        [](const ParameterSpec& each) { return !each.trained; });
    if (!normalises) continue;
    if (entry.part.samples * entry.shape.h() * entry.shape.w() == 1)
      throw Error("a rank would have a single value of each channel of " + entry.name +
                      ", which cannot be normalised: take fewer micro-batches or another strategy",
                  Exit::usage);
    if (fewest == 0 || entry.part.samples < fewest) fewest = entry.part.samples;
  }
  return fewest;
}

LayerTimes times_of(const Scenario& scenario, const CutPart& cut, const NetworkPart& part) {
  if (scenario.parts) return part_times(part, scenario.model, cut.samples(), *scenario.parts);
  LayerTimes times = scenario.times;
  times.scale(static_cast<double>(cut.samples()) / static_cast<double>(scenario.batch));
  return part_times(part, scenario.model, cut.samples(), times);
}

/// Adds what a layer's parameters take beside its computing.
void add_parameters(PartLayer& layer, const Scenario& scenario, const Model& part,
                    const Model::Entry& entry) {
  if (!scenario.parts || !entry.layer) return;
  std::int64_t elements = 0;
  for (const ParameterSpec& spec : part.parameters(entry))
    if (spec.trained) elements += spec.shape.elements();
  const double share =
      static_cast<double>(elements) / static_cast<double>(scenario.model.trained_parameters());
  layer.upload = share * scenario.weights_up;
  layer.download = layer.keeping = share * scenario.gradients_down;
  layer.adding = scenario.parts->adding(elements * static_cast<std::int64_t>(sizeof(float)));
}

RankPart part_of(const Scenario& scenario, const CutPart& cut, const NetworkPart& part, int rank,
                 const std::vector<PartSpan>& spans, std::uint64_t micro_batches) {
  const Model& whole = cut.network().whole();
  const LayerTimes own = times_of(scenario, cut, part);
  const std::map<std::string, int> nodes = nodes_of(whole);
  RankPart result{PartSchedule(part.model, micro_batches, cut.in_flight(rank)), {}};
  for (std::size_t node = 0; node < part.model.nodes().size(); ++node) {
    const Model::Entry& entry = part.model.nodes()[node];
    PartLayer layer;
    layer.forward = own.forward[node];
    layer.backward = own.backward[node];
    add_parameters(layer, scenario, part.model, entry);
    const auto found = nodes.find(entry.part.layer.empty() ? entry.name : entry.part.layer);
    if (found != nodes.end()) layer.node = found->second;
    if (const auto* send = dynamic_cast<const SendLayer*>(entry.layer.get()))
      for (const SendLayer::Piece& piece : send->pieces()) layer.sends.push_back(piece.transfer);
    if (const auto* receive = dynamic_cast<const ReceiveLayer*>(entry.layer.get()))
      if (receive->traits().returns_gradient) layer.returns.push_back(receive->transfer());
    result.layers.push_back(std::move(layer));
  }
  add_spans(result.layers, part.model, span_places(spans, rank, part.model));
  return result;
}

/// Without factors.
CutScenario dense_scenario(const Scenario& scenario, const ParallelSpec& parallel, int ranks) {
  CutPartSpec spec = CutPartSpec::of(parallel, scenario.batch, ranks);
  spec.command = "simulate";
  spec.factors = Factors::off;
  const CutPart cut(spec, scenario.model);
  net::ExchangeSpec exchange;
  cut.add_to(exchange, true);
  auto run = std::make_shared<simulation::CutRun>();
  run->routes = exchange.maps;
  run->members = exchange.members;
  run->parameters = cut.trace_names().parameters;
  run->micro_batches = parallel.micro_batches;
  const std::vector<PartSpan> spans = part_spans(cut.network());
  CutScenario found;
  found.linears = part_linears(cut.network(), spans);
  found.nodes.assign(found.linears.size(),
                     std::vector<std::size_t>(static_cast<std::size_t>(ranks), 0));
  for (int rank = 0; rank < ranks; ++rank) {
    const NetworkPart part = cut.network().part(rank);
    run->parts.push_back(part_of(scenario, cut, part, rank, spans, parallel.micro_batches));
    const auto places = span_places(spans, rank, part.model);
    for (std::size_t i = 0; i < found.linears.size(); ++i)
      if (found.linears[i].samples[static_cast<std::size_t>(rank)] > 0)
        found.nodes[i][static_cast<std::size_t>(rank)] =
            linear_of(found.linears[i], part.model, places).node;
    const std::int64_t samples = normalised_by(part.model);
    if (samples > 0 && (found.normalised == 0 || samples < found.normalised))
      found.normalised = samples;
  }
  found.run = std::move(run);
  for (const PartSpan& span : spans) found.counts.push_back(span.count);
  return found;
}

/// Returns the cut with the layers that exchange factors. Where the number of processors is known,
/// multiplying factors takes their time in place of half of these layers' backward; see spec_of().
CutScenario with_factors(CutScenario cut, const Scenario& scenario, const ParallelSpec& parallel,
                         int ranks) {
  CutPartSpec spec = CutPartSpec::of(parallel, scenario.batch, ranks);
  spec.command = "simulate";
  const std::vector<PartLinear> chosen = exchanging_factors(spec, scenario.model, cut.linears);
  cut.factored = of_exchange(chosen, parallel.micro_batches);
  if (chosen.empty() || scenario.cores <= 0 || scenario.threads <= 0) return cut;
  auto run = std::make_shared<simulation::CutRun>(*cut.run);
  for (std::size_t i = 0; i < cut.linears.size(); ++i) {
    const PartLinear& linear = cut.linears[i];
    const bool exchanged = std::any_of(chosen.begin(), chosen.end(), [&](const PartLinear& each) {
      return each.weights == linear.weights;
    });
    for (std::size_t rank = 0; exchanged && rank < run->parts.size(); ++rank) {
      if (linear.samples[rank] == 0) continue;
      PartLayer& layer = run->parts[rank].layers[cut.nodes[i][rank]];
      layer.backward *= factored_backward;
      layer.download = layer.keeping = layer.adding = 0.0;
    }
  }
  cut.run = std::move(run);
  return cut;
}

}  // namespace

CutScenario cut_scenario(const Scenario& scenario, const ParallelSpec& parallel, int ranks) {
  return with_factors(dense_scenario(scenario, parallel, ranks), scenario, parallel, ranks);
}

CutScenario CutScenarios::get(const Scenario& scenario, const ParallelSpec& parallel, int ranks) {
  return with_factors(dense(scenario, parallel, ranks), scenario, parallel, ranks);
}

CutScenario CutScenarios::dense(const Scenario& scenario, const ParallelSpec& parallel, int ranks) {
  if (parallel.strategy == "pipeline") return dense_scenario(scenario, parallel, ranks);
  const std::string key = parallel.strategy + " " + std::to_string(parallel.micro_batches) + " " +
                          std::to_string(parallel.in_flight) + " " + net::name_of(parallel.sync) +
                          " " + std::to_string(ranks) + parallel.share_text();
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (const auto kept = kept_.find(key); kept != kept_.end()) return kept->second;
  }
  const CutScenario found = dense_scenario(scenario, parallel, ranks);
  const std::lock_guard<std::mutex> lock(mutex_);
  return kept_.emplace(key, found).first->second;
}

}  // namespace duplex::tools
