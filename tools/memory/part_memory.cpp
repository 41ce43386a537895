#include "tools/memory/part_memory.h"

#include <algorithm>
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

/// Maps and their gradients that leave a rank or have come to it, at most: those of all
/// micro-batches that a sender may have begun.
std::size_t map_bytes(const CutPart& cut, int rank) {
  std::size_t bytes = 0;
  for (const MapTransfer& transfer : cut.network().transfers()) {
    if (transfer.from != rank && transfer.to != rank) continue;
    const std::size_t map = transfer.elements * sizeof(float);
    bytes += map * cut.in_flight(transfer.from);
    if (transfer.gradient)
      bytes += map * cut.in_flight(transfer.from == rank ? transfer.from : transfer.to);
  }
  return bytes;
}

/// The frames of a step that a rank sends and receives.
std::size_t frames_of(const MemorySpec& spec, const CutPart& cut, int rank,
                      const net::ShardMap& map) {
  std::size_t frames = 0;
  for (std::size_t i = 0; i < map.chunks(); ++i) {
    const std::vector<int>& members = *map.members(map[i].parameter);
    if (map[i].owner == rank)
      frames += 2 * (members.size() - 1);
    else if (std::binary_search(members.begin(), members.end(), rank))
      frames += 2;
  }
  for (const MapTransfer& transfer : cut.network().transfers())
    if (transfer.from == rank || transfer.to == rank)
      frames += (transfer.gradient ? 2 : 1) * spec.parallel.micro_batches *
                net::map_frames(transfer.elements);
  return frames;
}

/// The memory of the whole network's weights that the first rank has when those of which it has no
/// part have come: huge pages, since such a block is aligned to them (map_memory).
std::size_t gathered_bytes(const CutPart& cut) {
  constexpr std::size_t page = std::size_t{2} << 20;
  std::vector<std::size_t> begin{0};  // By parameter: where it begins.
  for (const ParameterSpec& spec : cut.network().whole().trained())
    begin.push_back(begin.back() + bytes_of(spec));
  std::size_t pages = 0, next = 0;
  for (const PartSpan& span : cut.spans()) {
    if (span.members.front() == 0) continue;
    const std::size_t from = begin[span.parameter] + span.first * sizeof(float);
    const std::size_t end = (from + span.count * sizeof(float) - 1) / page + 1;
    const std::size_t first = std::max(next, from / page);
    if (end > first) pages += end - first;
    next = std::max(next, end);
  }
  return std::min(pages * page, in_pages(begin.back()));
}

/// What the first rank has in the end. The others' last weights come while it still computes; then
/// it gives its part back, saves the whole network, and makes it where it is `tested`.
void add_ending(std::vector<Held>& all, const MemorySpec& spec, const CutPart& cut,
                const MemoryUse& exchanged, const NetworkMemory* tested) {
  const Model& whole = cut.network().whole();
  std::size_t weights = 0;
  for (const ParameterSpec& parameter : whole.trained()) weights += bytes_of(parameter);
  all[0].host[Use::host_weights] += gathered_bytes(cut);
  MemoryUse host = exchanged;
  host[Use::host_weights] += in_pages(weights);
  all.push_back({"saving", host});
  all.back().host[Use::saved] = in_pages(largest_of(whole));
  if (tested != nullptr) {
    RankMemory rank;
    add_networks(rank, host, spec, *tested, 1, false, false);
    host[Use::batches] =
        loader_bytes(tested->pixels / static_cast<std::size_t>(tested->batch), tested->batch);
    all.push_back({"testing", host});
  }
}

}  // namespace

CutPartSpec cut_spec_of(const MemorySpec& spec) {
  const ParallelSpec& parallel = spec.parallel;
  CutPartSpec cut;
  cut.strategy = parallel.strategy;
  cut.stages = parallel.stages;
  cut.micro_batches = parallel.micro_batches;
  cut.in_flight = parallel.in_flight;
  cut.step_samples = static_cast<std::uint64_t>(spec.batch * parallel.batches_a_step(spec.workers));
  cut.ranks = spec.workers;
  return cut;
}

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

RankMemory memory_of_part(const MemorySpec& spec, const CutPart& cut, int rank,
                          const NetworkMemory& part, const NetworkMemory* tested,
                          const ProgramMemory& program) {
  const NetworkPart own = cut.network().part(rank);
  const Exchanged bytes = exchanged_by(cut, rank, own.model);
  const net::Topology topology = spec.topology();
  const net::ShardMap map = map_of(spec, cut);
  const std::vector<Model::Linear> factored;
  const net::StoreMemory store =
      net::store_memory(map, rank, store_spec(spec, topology, rank, map, factored));
  MemoryUse use;
  use[Use::program] = program.works;
  use[Use::code] = part.code;
  use[Use::host_weights] = use[Use::host_gradients] = in_pages(bytes.part) + in_pages(bytes.twice);
  use[Use::owned] = in_pages(store.state);
  use[Use::received] = store.received;
  use[Use::wire] = coded_bytes_of(spec, topology, rank, map) +
                   ledger_bytes(frames_of(spec, cut, rank, map)) + in_pages(store.packed);
  use[Use::maps] = map_bytes(cut, rank);
  if (spec.checkpoints)
    use[Use::checkpoint] =
        store.before + map.elements_of(rank) * sizeof(float) *
                           (1 + static_cast<std::size_t>(spec.optimiser.states()));
  RankMemory memory;
  std::vector<Held> all{{"training", use}};
  MemoryUse& training = all[0].host;
  add_networks(memory, training, spec, part, 1, false, false);
  if (spec.parallel.micro_batches > 1) training[Use::sums] = bytes.part + largest_of(own.model);
  training[Use::batches] = loader_bytes(part.pixels / static_cast<std::size_t>(part.batch),
                                        cut.has_loss(rank) ? cut.samples() : own.images);
  // The first values of whole parameters are drawn, one after the other.
  all.push_back({"starting", {}});
  for (const Use each : {Use::program, Use::host_weights, Use::host_gradients})
    all.back().host[each] = use[each];
  all.back().host[Use::saved] = in_pages(largest_of(cut.network().whole()));
  if (rank == 0) add_ending(all, spec, cut, use, tested);
  take_most(memory, all);
  memory.role = "rank " + std::to_string(rank);
  return memory;
}

}  // namespace duplex::tools
