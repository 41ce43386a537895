#include "tools/memory/rank_memory.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "net/store/store_memory.h"
#include "net/topology/keepers.h"
#include "tools/memory/process_memory.h"
#include "tools/memory/resident.h"

namespace duplex::tools {
namespace {

/// A worker's process; `exchanged`: what it needs to train with others. `updates`: its optimiser is
/// on its device. `alone`: it trains alone, and still reads batches ahead while it saves.
RankMemory trainer(const MemorySpec& spec, const NetworkMemory& network,
                   const ProgramMemory& program, const MemoryUse& exchanged, bool updates,
                   bool alone) {
  RankMemory rank;
  MemoryUse host = exchanged;
  const std::size_t slots = alone ? 1 : spec.slots();
  const std::size_t loader = loader_bytes(network, network.batch);
  host[Use::program] = alone ? program.alone : program.works;
  host[Use::code] = network.code;
  add_networks(rank, host, spec, network, slots, updates, alone);
  // Tests and files are of the average, with which the weights change places meanwhile.
  const std::size_t average = spec.averages ? in_pages(network.weights) : 0;
  if (spec.checkpoints) host[Use::checkpoint] += 2 * average;
  host[Use::average] = 2 * average;
  std::vector<Held> all{{"training", host}};
  all[0].host[Use::average] = average;
  all[0].host[Use::batches] = slots * loader;
  if (spec.tests) {
    all.push_back({"testing", host});
    all.back().host[Use::batches] = (slots + 1) * loader;
  }
  all.push_back({"saving", host});
  all.back().host[Use::batches] = alone ? loader : 0;
  // The average of a parameter is one more copy while the newest weights are taken into it.
  all.back().host[Use::saved] = (spec.averages ? 2 : 1) * in_pages(network.largest);
  take_most(rank, all);
  return rank;
}

/// Buffers of the connections, beside those that stores have: of payloads that are not float32, and
/// an asynchronous owner copies each chunk as it leaves. And the ledger's records of a step.
std::size_t wire_bytes(const MemorySpec& spec, const net::Topology& topology, int rank,
                       const net::ShardMap& map) {
  const std::size_t peers = topology.peers_of(rank).size();
  std::size_t bytes = coded_bytes_of(spec, topology, rank, map);
  if (spec.parallel.sync == net::Sync::none) bytes += peers * map.longest_of(rank) * sizeof(float);
  const std::size_t frames = topology.is_owner(rank) && topology.is_worker(rank)
                                 ? map.chunks() * 2
                                 : map.chunks() * 2 * peers;
  return bytes + ledger_bytes(frames);
}

/// Copies for a checkpoint that is written before the next one is taken: of what this rank owns,
/// once as it was before the last update and once on its way to the disk, and of what it keeps for
/// others. A worker that averages has the state of its own optimiser three times, as it was after
/// two rounds and on its way to the disk; then nobody keeps a copy of it.
std::size_t checkpoint_bytes(const MemorySpec& spec, const net::Topology& topology, int rank,
                             const net::ShardMap& map, const net::StoreMemory& store) {
  const bool averages = spec.parallel.average > 0;
  const auto states = static_cast<std::size_t>(spec.optimiser.states());
  const auto part = [&](int owner) {
    return map.elements_of(owner) * sizeof(float) * (1 + (averages ? 0 : states));
  };
  std::size_t bytes = store.before + part(rank);
  if (averages && topology.is_worker(rank)) bytes += 3 * states * map.elements() * sizeof(float);
  if (spec.parallel.sync == net::Sync::none || (averages && states > 0)) return bytes;
  const net::Keepers keepers(topology,
                             std::vector<std::string>(static_cast<std::size_t>(topology.size)));
  for (const int owner : keepers.owners_of(rank)) bytes += part(owner);
  return bytes;
}

/// Adds what a worker holds for factored layers: the optimiser's state of whole layers; factors
/// instead of gradients; those of all workers, for two steps; and those of one layer once more, in
/// the order in which they are multiplied.
void add_factors(MemoryUse& use, const MemorySpec& spec, int rank, const net::ShardMap& map,
                 const std::vector<Model::Linear>& factored) {
  const std::size_t samples = static_cast<std::size_t>(spec.images()) * spec.slots();
  const auto workers = static_cast<std::size_t>(spec.workers);
  const auto states = static_cast<std::size_t>(spec.optimiser.states());
  std::size_t whole = 0, factors = 0, most = 0, kept = 0;
  for (const Model::Linear& layer : factored) {
    const std::size_t own = samples * (layer.outputs + layer.inputs) * sizeof(float);
    whole += (layer.outputs * layer.inputs + layer.outputs) * sizeof(float);
    factors += own;
    most = std::max(most, own);
  }
  for (std::size_t i = 0; i < map.chunks(); ++i)
    if (map[i].owner == rank && is_factored(factored, map[i].parameter)) kept += map[i].bytes();
  use[Use::host_gradients] += factors - spec.slots() * whole;
  use[Use::owned] += in_pages(whole * states);
  use[Use::received] += 2 * (workers - 1) * factors + workers * most;
  if (spec.checkpoints) use[Use::checkpoint] += kept * (1 + states);
}

const char* role_of(const net::Topology& topology, int rank) {
  if (!topology.is_worker(rank)) return "central server";
  return topology.is_owner(rank) ? "worker, owner" : "worker";
}

}  // namespace

net::Topology MemorySpec::topology() const {
  return parallel.topology(workers + (parallel.central() ? 1 : 0));
}

std::int64_t MemorySpec::images() const {
  std::int64_t most = 0;
  for (int worker = 0; worker < (parallel.shares.empty() ? 1 : workers); ++worker)
    most = std::max(most, images_of(worker) / parallel.slots_of(worker));
  return most;
}

std::int64_t MemorySpec::images_of(int worker) const {
  if (parallel.slots.empty() || !parallel.shares.empty() || !parallel.splits())
    return parallel.share(batch, worker, workers).count;
  const int all = parallel.all_slots(workers);
  return (batch + all - 1) / all * parallel.slots_of(worker);
}

std::size_t MemorySpec::slots() const {
  int most = 1;
  for (const int slots : parallel.slots) most = std::max(most, slots);
  return static_cast<std::size_t>(most);
}

const char* name_of(Use use) {
  constexpr const char* names[] = {"program",
                                   "operations' code and data",
                                   "weights",
                                   "gradients",
                                   "optimiser's state",
                                   "activations, their gradients",
                                   "kept for backward",
                                   "workspace, at most",
                                   "cuDNN's workspace, at most",
                                   "batches read ahead",
                                   "weights to exchange",
                                   "gradients to exchange",
                                   "owned: state, weights",
                                   "gradients received, at most",
                                   "wire buffers, ledger",
                                   "copies for checkpoints",
                                   "parameter being saved",
                                   "averaged weights",
                                   "sums over micro-batches",
                                   "maps that come and leave, at most"};
  static_assert(sizeof names / sizeof *names == uses);
  return names[static_cast<std::size_t>(use)];
}

std::size_t MemoryUse::sum() const {
  return std::accumulate(bytes_.begin(), bytes_.end(), std::size_t{0});
}

RankMemory memory_alone(const MemorySpec& spec, const NetworkMemory& network,
                        const ProgramMemory& program) {
  RankMemory rank = trainer(spec, network, program, {}, true, true);
  rank.role = "alone";
  return rank;
}

RankMemory memory_of_rank(const MemorySpec& spec, int rank, const net::ShardMap& map,
                          const std::vector<Model::Linear>& factored, const NetworkMemory& network,
                          const ProgramMemory& program) {
  const net::Topology topology = spec.topology();
  const bool trains = topology.is_worker(rank);
  const std::size_t weights = in_pages(map.elements() * sizeof(float));
  const net::StoreMemory store =
      store_memory(map, rank, store_spec(spec, topology, rank, map, factored));
  MemoryUse use;
  use[Use::host_weights] = weights;
  if (trains) use[Use::host_gradients] = spec.slots() * weights;
  use[Use::owned] = in_pages(store.state);
  use[Use::received] = store.received;
  use[Use::wire] = wire_bytes(spec, topology, rank, map) + in_pages(store.packed);
  if (spec.checkpoints) use[Use::checkpoint] = checkpoint_bytes(spec, topology, rank, map, store);
  if (trains) add_factors(use, spec, rank, map, factored);
  RankMemory memory;
  if (trains) {
    memory = trainer(spec, network, program, use, spec.parallel.average > 0, false);
  } else {
    use[Use::program] = program.serves;
    memory.host = use;
    memory.when = "serving";
  }
  memory.role = role_of(topology, rank);
  return memory;
}

net::ShardMap shard_map_of(const Model& model, const MemorySpec& spec) {
  std::vector<std::size_t> counts;
  for (const ParameterSpec& parameter : model.trained())
    counts.push_back(static_cast<std::size_t>(parameter.shape.elements()));
  return spec.topology().shard_map(counts, spec.parallel.shards, std::nullopt);
}

}  // namespace duplex::tools
