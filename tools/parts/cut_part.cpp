#include "tools/parts/cut_part.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <set>

#include "core/error.h"
#include "layers/checkpoint.h"
#include "net/crypto/digest.h"
#include "tools/parts/placing.h"
#include "tools/plan/factored_layers.h"

namespace duplex::tools {
namespace {

Placement placement_of(const CutPartSpec& spec, const Model& whole) {
  const std::uint64_t micro_batches = spec.micro_batches, all = spec.step_samples;
  if (all % micro_batches != 0)
    throw Error(spec.command + ": the " + std::to_string(all) +
                    " images of a step cannot be cut into " + std::to_string(micro_batches) +
                    " micro-batches of equal size: give another --micro-batches or --batch",
                Exit::usage);
  PlacingSpec placing;
  placing.strategy = spec.strategy;
  placing.stages = spec.stages;
  placing.samples = static_cast<std::int64_t>(all / micro_batches);
  placing.micro_batches = static_cast<std::int64_t>(micro_batches);
  placing.speeds = spec.speeds;
  placing.speeds.resize(static_cast<std::size_t>(spec.ranks), 1.0);
  try {
    return place(whole, placing);
  } catch (const Error& error) {
    throw Error(spec.command + " --strategy " + placing.strategy + ": " + error.what(), error.code);
  }
}

}  // namespace

std::vector<PartLinear> exchanging_factors(const CutPartSpec& spec, const Model& whole,
                                           std::vector<PartLinear> layers) {
  if (spec.factors == Factors::off) return {};
  if (spec.factors == Factors::on && layers.empty())
    throw Error(spec.command + ": --factors on, but no ranks share a linear layer of " +
                    whole.title() + " with --strategy " + spec.strategy + ": leave it out",
                Exit::usage);
  if (spec.factors == Factors::on) return layers;
  const auto saves_nothing = [&](const PartLinear& layer) {
    const std::int64_t samples =
        std::accumulate(layer.samples.begin(), layer.samples.end(), std::int64_t{0});
    return !factors_save(layer.outputs, layer.inputs,
                         static_cast<std::size_t>(samples) * spec.micro_batches);
  };
  layers.erase(std::remove_if(layers.begin(), layers.end(), saves_nothing), layers.end());
  return layers;
}

std::vector<net::FactoredLayer> of_exchange(const std::vector<PartLinear>& layers,
                                            std::uint64_t micro_batches) {
  std::vector<net::FactoredLayer> found;
  for (const PartLinear& layer : layers) {
    found.push_back({layer.weights, layer.bias, layer.outputs, layer.inputs, {}});
    for (const std::int64_t samples : layer.samples)
      found.back().samples.push_back(static_cast<std::size_t>(samples) * micro_batches);
  }
  return found;
}

namespace {

std::string whole_name(const ParameterSpec& spec) {
  return spec.rows.parameter.empty() ? spec.name : spec.rows.parameter;
}

/// Returns the running statistics of a model, in the order of its layers.
std::vector<ParameterSpec> statistics_in(const Model& model) {
  std::vector<ParameterSpec> found;
  for (const Model::Entry& entry : model.nodes())
    for (const ParameterSpec& spec : model.parameters(entry))
      if (!spec.trained) found.push_back(spec);
  return found;
}

std::size_t elements_in(const std::vector<ParameterSpec>& specs) {
  std::size_t count = 0;
  for (const ParameterSpec& spec : specs) count += static_cast<std::size_t>(spec.shape.elements());
  return count;
}

}  // namespace

CutPartSpec CutPartSpec::of(const ParallelSpec& parallel, std::int64_t batch, int ranks) {
  CutPartSpec spec;
  spec.strategy = parallel.strategy;
  spec.stages = parallel.stages;
  spec.micro_batches = parallel.micro_batches;
  spec.in_flight = parallel.in_flight;
  if (parallel.takes_factors()) spec.factors = parallel.factors;
  spec.step_samples = static_cast<std::uint64_t>(batch * parallel.batches_a_step(ranks));
  for (int rank = 0; rank < ranks && !parallel.shares.empty(); ++rank)
    spec.speeds.push_back(static_cast<double>(parallel.shares[static_cast<std::size_t>(rank)]));
  spec.ranks = ranks;
  return spec;
}

CutPart::CutPart(const CutPartSpec& spec, const Model& whole)
    : spec_(spec),
      network_(whole, placement_of(spec, whole)),
      part_(network_.part(spec.rank)),
      spans_(part_spans(network_)),
      factored_(exchanging_factors(spec, whole, part_linears(network_, spans_))) {
  // The sender of such a map waits for no answer, and could be any number of steps ahead.
  for (const MapTransfer& transfer : network_.transfers())
    if (!transfer.gradient)
      throw Error(spec.command + " --strategy " + spec.strategy + ": the output of " +
                      whole.entry(transfer.node).name +
                      " would cross, and no gradient of it come back, since nothing before it is "
                      "trained or no loss depends on it: take another strategy",
                  Exit::usage);
  for (int rank = 1; rank < spec.ranks; ++rank)
    if (has_loss(rank)) losing_.push_back(rank);
}

bool CutPart::has_loss(int rank) const {
  const std::vector<PlacedRegion>& pieces = network_.pieces();
  return std::any_of(pieces.begin(), pieces.end(), [&](const PlacedRegion& piece) {
    if (piece.rank != rank) return false;
    const std::vector<Model::Node>& layers = network_.units()[piece.unit].layers;
    return std::any_of(layers.begin(), layers.end(), [&](Model::Node node) {
      return network_.whole().entry(node).layer->loss_kind().has_value();
    });
  });
}

std::uint64_t CutPart::in_flight(int rank) const {
  // A network that is cut otherwise than into stages counts as one stage.
  const std::vector<int>& stage_of = network_.placement().stage_of;
  const int stages =
      stage_of.empty() ? 1 : stage_of.back() + 1 - stage_of[static_cast<std::size_t>(rank)];
  return std::min(spec_.micro_batches, spec_.in_flight * static_cast<std::uint64_t>(stages));
}

std::string CutPart::digest() const {
  std::string text;
  for (const PlacedRegion& piece : network_.pieces())
    for (const std::int64_t number :
         {static_cast<std::int64_t>(piece.unit), std::int64_t{piece.rank},
          piece.region.first_sample, piece.region.samples, piece.region.channels.first,
          piece.region.channels.end})
      text += std::to_string(number) + " ";
  for (const MapTransfer& transfer : network_.transfers())
    for (const std::int64_t number :
         {std::int64_t{transfer.node}, std::int64_t{transfer.from}, std::int64_t{transfer.to},
          static_cast<std::int64_t>(transfer.elements)})
      text += std::to_string(number) + " ";
  return net::short_hex(net::sha256(text));
}

std::string CutPart::text() const {
  std::set<std::string> layers, some;
  for (const Model::Entry& entry : part_.model.nodes()) {
    if (!entry.layer || entry.layer->type() == "send" || entry.layer->type() == "receive" ||
        entry.layer->type() == "gather")
      continue;
    const bool whole =
        entry.part.layer.empty() || (entry.shape.c() == entry.part.all_channels &&
                                     entry.part.samples == network_.placement().samples);
    layers.insert(entry.part.layer.empty() ? entry.name : entry.part.layer);
    if (!whole) some.insert(entry.part.layer);
  }
  return "computes " + std::to_string(layers.size()) + " of " +
         std::to_string(network_.whole().nodes().size() - 1) + " layers" +
         (some.empty() ? "" : ", " + std::to_string(some.size()) + " of them in part");
}

void CutPart::fill(HostParameters& host, std::uint64_t seed, const std::string& path,
                   const VisitFirstValues& visit) {
  std::map<std::string, std::vector<std::pair<const ParameterSpec*, float*>>> wanted;
  std::vector<std::vector<ParameterSpec>> specs;  // They live until the end.
  std::size_t next = 0;
  for (const Model::Entry& entry : part_.model.nodes()) {
    specs.push_back(part_.model.parameters(entry));
    for (const ParameterSpec& spec : specs.back()) {
      float* to = nullptr;
      if (spec.trained) {
        to = host.spans()[next++].weights;
      } else {
        std::vector<float>& values = statistics_[spec.name];
        values.resize(static_cast<std::size_t>(spec.shape.elements()));
        to = values.data();
      }
      wanted[whole_name(spec)].emplace_back(&spec, to);
    }
  }
  const auto take = [&](const ParameterSpec& spec, const float* values) {
    visit(spec, values);
    for (const auto& [own, to] : wanted[spec.name])
      std::copy_n(values + own->rows.first, own->shape.elements(), to);
  };
  visit_first_values(network_.whole(), seed, path, take);
  if (spec_.rank == 0) whole_ = std::make_unique<HostParameters>(network_.whole(), false);
}

void CutPart::load(const HostParameters& host, Network& network) const {
  for (std::size_t p = 0; p < network.parameters().size(); ++p)
    network.device().upload(network.parameters()[p].weights, host.spans()[p].weights);
  for (Parameter& statistic : network.statistics())
    network.device().upload(statistic.weights, statistics_.at(statistic.name).data());
}

std::vector<StateArray> CutPart::statistics_of(Network& network) {
  std::vector<StateArray> arrays = duplex::statistics_of(network);
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    const ParameterSpec& spec = network.statistics()[i].spec;
    const std::int64_t from = spec.rows.first, count = spec.shape.elements();
    arrays[i].name =
        whole_name(spec) + "[" + std::to_string(from) + ":" + std::to_string(from + count) + "]";
    arrays[i].shape = Shape{count};
  }
  return arrays;
}

void CutPart::add_to(net::ExchangeSpec& exchange, bool replays) const {
  exchange.mean = {};
  exchange.mean.sum = true;
  for (const PartSpan& span : spans_) exchange.members.push_back(span.members);
  for (const MapTransfer& transfer : network_.transfers())
    exchange.maps.push_back({transfer.from, transfer.to, transfer.elements, transfer.gradient,
                             false, network_.whole().entry(transfer.node).name});
  for (const int rank : losing_)
    if (!replays) exchange.maps.push_back({rank, 0, 1, false, true, "the loss"});
  exchange.factored = of_exchange(factored_, spec_.micro_batches);
  exchange.micro_batches = spec_.micro_batches;
  exchange.in_flight = in_flight(0);
}

HostFactors CutPart::host_factors(int rank, const Model& part) const {
  HostFactors here;
  if (factored_.empty()) return here;
  const auto places = span_places(spans_, rank, part);
  for (const PartLinear& layer : factored_) {
    const std::int64_t samples = layer.samples[static_cast<std::size_t>(rank)];
    if (samples == 0) continue;
    here.layers.push_back(linear_of(layer, part, places));
    here.samples.push_back(static_cast<std::size_t>(samples) * spec_.micro_batches);
  }
  return here;
}

TraceNames CutPart::trace_names() const {
  TraceNames names;
  for (const PartSpan& span : spans_) names.parameters.push_back(span.name);
  for (const MapTransfer& transfer : network_.transfers())
    names.maps.push_back(network_.whole().entry(transfer.node).name);
  return names;
}

LossRoutes CutPart::loss_routes() const {
  LossRoutes routes;
  for (std::size_t i = 0; i < losing_.size(); ++i) {
    const std::size_t route = network_.transfers().size() + i;
    if (spec_.rank == 0) routes.coming.push_back(route);
    if (spec_.rank == losing_[i]) routes.leaving = route;
  }
  return routes;
}

PartExchange& CutPart::exchange(const HostParameters& host) {
  if (!exchange_)
    exchange_ = std::make_unique<PartExchange>(spans_, spec_.rank, part_.model, host, whole_.get());
  return *exchange_;
}

const HostParameters& CutPart::whole_weights(const HostParameters& host) {
  exchange(host).copy_weights(*whole_);
  return *whole_;
}

std::vector<std::size_t> CutPart::statistics_by_rank() const {
  std::vector<std::size_t> counts;
  for (int rank = 0; rank < spec_.ranks; ++rank)
    counts.push_back(elements_in(statistics_in(network_.part(rank).model)));
  return counts;
}

std::vector<float> CutPart::whole_statistics(const StatisticsOf& of_rank) const {
  std::map<std::string, std::size_t> places;  // By name: where a statistic begins.
  std::size_t all = 0;
  for (const ParameterSpec& spec : statistics_in(network_.whole())) {
    places[spec.name] = all;
    all += static_cast<std::size_t>(spec.shape.elements());
  }
  std::vector<float> values(all);
  for (int rank = 0; rank < spec_.ranks; ++rank) {
    const std::vector<ParameterSpec> specs = statistics_in(network_.part(rank).model);
    const std::size_t count = elements_in(specs);
    const std::vector<float> own = of_rank(rank, count);
    if (own.size() != count)
      throw Error("rank " + std::to_string(rank) + " has not reported its running statistics");
    const float* next = own.data();
    for (const ParameterSpec& spec : specs) {
      std::copy_n(next, spec.shape.elements(),
                  values.data() + places.at(whole_name(spec)) + spec.rows.first);
      next += spec.shape.elements();
    }
  }
  return values;
}

}  // namespace duplex::tools
