#include "tools/memory/part_memory.h"

#include <algorithm>
#include <numeric>
#include <set>

#include "net/maps/map_route.h"
#include "net/store/store_memory.h"
#include "tools/memory/process_memory.h"
#include "tools/memory/resident.h"

namespace duplex::tools {
namespace {

std::size_t bytes_of(const ParameterSpec& spec) {
  return static_cast<std::size_t>(spec.shape.elements()) * sizeof(float);
}

std::size_t largest_of(const Model& model) {
  std::size_t largest = 0;
  for (const ParameterSpec& spec : model.trained()) largest = std::max(largest, bytes_of(spec));
  return largest;
}

/// Returns the bytes of the largest parameter of a part whose gradients are added up.
std::size_t largest_summed(const Model& part, const HostFactors& factors) {
  std::size_t largest = 0;
  const std::vector<ParameterSpec> specs = part.trained();
  for (std::size_t p = 0; p < specs.size(); ++p)
    if (!is_factored(factors.layers, p)) largest = std::max(largest, bytes_of(specs[p]));
  return largest;
}

/// The parameters that a rank has and exchanges.
struct Exchanged {
  std::size_t part = 0;   ///< Bytes of all of them.
  std::size_t twice = 0;  ///< Those of rows that the rank has more than once.
};

Exchanged exchanged_by(const CutPart& cut, int rank, const Model& part) {
  Exchanged bytes;
  for (const ParameterSpec& spec : part.trained()) bytes.part += bytes_of(spec);
  const auto places = span_places(cut.spans(), rank, part);
  for (std::size_t span = 0; span < places.size(); ++span)
    if (places[span].size() > 1) bytes.twice += cut.spans()[span].count * sizeof(float);
  return bytes;
}

net::ShardMap map_of(const MemorySpec& spec, const CutPart& cut) {
  std::vector<std::size_t> counts;
  std::vector<std::vector<int>> members;
  for (const PartSpan& span : cut.spans()) {
    counts.push_back(span.count);
    members.push_back(span.members);
  }
  return spec.topology().shard_map(counts, spec.parallel.shards, std::nullopt, members);
}

/// Returns the layers that exchange factors, with the numbers of their spans.
std::vector<Model::Linear> factored_spans(const CutPart& cut) {
  std::vector<Model::Linear> layers;
  for (const PartLinear& layer : cut.factored())
    layers.push_back({0, layer.weights, layer.bias, layer.outputs, layer.inputs});
  return layers;
}

/// These are the bytes that a rank holds for layers that exchange factors.
struct FactorBytes {
  std::size_t weights = 0;   ///< Those of the layers, with biases.
  std::size_t own = 0;       ///< The rank's factors.
  std::size_t received = 0;  ///< Others' of two steps, and those of one layer once more.
};

FactorBytes factor_bytes(const CutPart& cut, int rank, std::uint64_t micro_batches) {
  FactorBytes bytes;
  std::size_t most = 0;
  for (const net::FactoredLayer& layer : of_exchange(cut.factored(), micro_batches)) {
    const std::size_t own = layer.samples[static_cast<std::size_t>(rank)];
    if (own == 0) continue;
    const std::size_t row = (layer.outputs + layer.inputs) * sizeof(float);
    const std::size_t all =
        std::accumulate(layer.samples.begin(), layer.samples.end(), std::size_t{0});
    bytes.weights += (layer.outputs * layer.inputs + layer.outputs) * sizeof(float);
    bytes.own += own * row;
    bytes.received += 2 * (all - own) * row;
    most = std::max(most, all * row);
  }
  bytes.received += most;
  return bytes;
}

CutPartSpec cut_spec_of(const MemorySpec& spec) {
  CutPartSpec cut = CutPartSpec::of(spec.parallel, spec.batch, spec.workers);
  cut.command = "nets";
  return cut;
}

}  // namespace

std::string key_of(const NetworkPart& part, const Model& whole) {
  std::set<std::string> names;
  for (const Model::Entry& entry : whole.nodes()) names.insert(entry.name);
  std::string key = std::to_string(part.images) + ";";
  for (const Model::Entry& entry : part.model.nodes()) {
    // The names of layers that are in no network say which ranks they join.
    const std::string& layer = entry.part.layer.empty() ? entry.name : entry.part.layer;
    key += names.count(layer) > 0 ? layer : entry.layer->type();
    key += " " + entry.shape.str() + " " + std::to_string(entry.part.samples);
    for (const Model::Node input : entry.inputs) key += " " + std::to_string(input);
    key += ";";
  }
  return key;
}

PartMemory::PartMemory(const Model& model, const MemorySpec& spec, const ProgramMemory& program)
    : spec_(spec),
      program_(program),
      cut_(cut_spec_of(spec), model),
      topology_(spec.topology()),
      map_(map_of(spec, cut_)) {}

/// Returns the bytes of maps and their gradients that leave a rank or have come to it, at most:
/// those of all micro-batches that their sender may have begun.
std::size_t PartMemory::map_bytes(int rank) const {
  std::size_t bytes = 0;
  for (const MapTransfer& transfer : cut_.network().transfers()) {
    if (transfer.from != rank && transfer.to != rank) continue;
    const std::size_t map = transfer.elements * sizeof(float);
    bytes += map * cut_.in_flight(transfer.from);
    if (transfer.gradient) bytes += map * cut_.in_flight(rank);
  }
  return bytes;
}

/// Returns the number of frames of a step that a rank sends and receives.
std::size_t PartMemory::frames(int rank) const {
  std::size_t frames = 0;
  const std::vector<Model::Linear> factored = factored_spans(cut_);
  for (std::size_t i = 0; i < map_.chunks(); ++i) {
    const std::vector<int>& members = *map_.members(map_[i].parameter);
    if (is_factored(factored, map_[i].parameter)) continue;
    if (map_[i].owner == rank)
      frames += 2 * (members.size() - 1);
    else if (map_.trains(rank, map_[i].parameter))
      frames += 2;
  }
  const net::FactorMap factors(of_exchange(cut_.factored(), spec_.parallel.micro_batches));
  for (std::size_t layer = 0; layer < factors.layers().size(); ++layer)
    for (int other = 0; factors.trains(rank, layer) && other < spec_.workers; ++other)
      if (other != rank && factors.trains(other, layer))
        frames += factors.pieces(layer, rank).size() + factors.pieces(layer, other).size();
  for (const MapTransfer& transfer : cut_.network().transfers())
    if (transfer.from == rank || transfer.to == rank)
      frames += (transfer.gradient ? 2 : 1) * spec_.parallel.micro_batches *
                net::map_frames(transfer.elements);
  return frames;
}

/// Returns the bytes of a rank's chunks of layers that exchange factors, which it keeps as they
/// were before the last update.
std::size_t PartMemory::kept_of(int rank, const std::vector<Model::Linear>& factored) const {
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < map_.chunks(); ++i)
    if (map_[i].owner == rank && is_factored(factored, map_[i].parameter)) bytes += map_[i].bytes();
  return bytes;
}

/// Returns the memory of the whole network's weights on the first rank when those have come of
/// which it has no part: huge pages, since such a block is aligned to them (map_memory). Spans are
/// in the order in which they lie there.
std::size_t PartMemory::gathered_bytes() const {
  constexpr std::size_t page = std::size_t{2} << 20;
  std::vector<std::size_t> begin{0};  // By parameter: where it begins.
  for (const ParameterSpec& spec : cut_.network().whole().trained())
    begin.push_back(begin.back() + bytes_of(spec));
  std::size_t pages = 0, next = 0;
  for (const PartSpan& span : cut_.spans()) {
    if (span.members.front() == 0) continue;
    const std::size_t from = begin[span.parameter] + span.first * sizeof(float);
    const std::size_t end = (from + span.count * sizeof(float) - 1) / page + 1;
    const std::size_t first = std::max(next, from / page);
    if (end > first) pages += end - first;
    next = std::max(next, end);
  }
  return std::min(pages * page, in_pages(begin.back()));
}

RankMemory PartMemory::of_rank(int rank, const NetworkPart& part, const NetworkMemory& networks,
                               const NetworkMemory* tested) const {
  const Model& whole = cut_.network().whole();
  const Exchanged bytes = exchanged_by(cut_, rank, part.model);
  const std::vector<Model::Linear> factored = factored_spans(cut_);
  const net::StoreMemory store =
      net::store_memory(map_, rank, store_spec(spec_, topology_, rank, map_, factored));
  MemoryUse use;
  use[Use::program] = program_.works;
  const FactorBytes factors = factor_bytes(cut_, rank, spec_.parallel.micro_batches);
  use[Use::host_weights] = in_pages(bytes.part) + in_pages(bytes.twice);
  use[Use::host_gradients] = use[Use::host_weights] + factors.own - factors.weights;
  // The first values of whole parameters are drawn, one after the other.
  std::vector<Held> all{{"starting", use}};
  all.back().host[Use::saved] = in_pages(largest_of(whole));

  use[Use::code] = networks.code;
  const auto states = static_cast<std::size_t>(spec_.optimiser.states());
  use[Use::owned] = in_pages(store.state) + in_pages(factors.weights * states);
  use[Use::received] = store.received + factors.received;
  use[Use::wire] = coded_bytes_of(spec_, topology_, rank, map_) + ledger_bytes(frames(rank)) +
                   in_pages(store.packed);
  use[Use::maps] = map_bytes(rank);
  if (spec_.checkpoints)
    use[Use::checkpoint] =
        store.before +
        (map_.elements_of(rank) * sizeof(float) + kept_of(rank, factored)) * (1 + states);
  RankMemory memory;
  MemoryUse training = use;
  add_networks(memory, training, spec_, networks, 1, false, false);
  if (spec_.parallel.micro_batches > 1)
    training[Use::sums] = bytes.part - factors.weights +
                          largest_summed(part.model, cut_.host_factors(rank, part.model));
  training[Use::batches] =
      loader_bytes(networks, cut_.has_loss(rank) ? cut_.samples() : part.images);
  if (rank == 0) {
    // The others' last weights come while it still computes. Then it gives its part back, saves the
    // whole network's weights, and makes the network if it is tested.
    training[Use::host_weights] += gathered_bytes();
    std::size_t weights = 0;
    for (const ParameterSpec& parameter : whole.trained()) weights += bytes_of(parameter);
    use[Use::host_weights] += in_pages(weights);
    all.push_back({"saving", use});
    all.back().host[Use::saved] = in_pages(largest_of(whole));
  }
  if (rank == 0 && tested != nullptr) {
    RankMemory testing;
    add_networks(testing, use, spec_, *tested, 1, false, false);
    use[Use::batches] = loader_bytes(*tested, tested->batch);
    all.push_back({"testing", use});
    if (testing.device.sum() > memory.device.sum()) memory.device = testing.device;
  }
  all.push_back({"training", training});
  take_most(memory, all);
  memory.role = "rank " + std::to_string(rank);
  return memory;
}

}  // namespace duplex::tools
