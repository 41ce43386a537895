#include "tools/memory/process_memory.h"

#include <algorithm>

#include "net/ledger/frame_record.h"
#include "tools/memory/resident.h"
#include "tools/setup/setup.h"

namespace duplex::tools {
namespace {

/// Returns the memory of a network on its device, which on a CPU is the host's. With `updates` the
/// optimiser's state is there, too.
MemoryUse on_device(const MemorySpec& spec, const NetworkMemory& network, bool updates) {
  MemoryUse use;
  use[Use::weights] = in_pages(network.weights) + in_pages(network.rounded) + network.statistics;
  use[Use::gradients] = in_pages(network.gradients);
  use[Use::activations] = in_pages(network.arena);
  use[Use::kept] = network.operations.kept;
  for (const std::size_t shared : network.operations.shared)
    use[Use::workspace] += in_pages(shared);
  if (updates)
    use[Use::optimiser] =
        static_cast<std::size_t>(spec.optimiser.states()) * in_pages(network.weights);
  return use;
}

}  // namespace

void take_most(RankMemory& rank, const std::vector<Held>& all) {
  const Held& most = *std::max_element(all.begin(), all.end(), [](const Held& a, const Held& b) {
    return a.host.sum() < b.host.sum();
  });
  rank.host = most.host;
  rank.when = most.doing;
}

void add_networks(RankMemory& rank, MemoryUse& host, const MemorySpec& spec,
                  const NetworkMemory& network, std::size_t slots, bool updates, bool alone) {
  const MemoryUse device = on_device(spec, network, updates);
  if (is_gpu(spec.computing)) {
    rank.device = device;
    // A batch is copied ahead, and parameters that are not plain by way of plain ones: both ways,
    // and before the training.
    rank.device[Use::batches] = network.pixels;
    rank.device[Use::workspace] += network.copies * (alone ? 1 : 3);
    rank.device[Use::engines] = GpuSizes::workspace_limit(spec.gpu_bytes);
    return;
  }
  for (std::size_t use = 0; use < uses; ++use)
    host[static_cast<Use>(use)] += slots * device[static_cast<Use>(use)];
}

std::size_t loader_bytes(const NetworkMemory& network, std::int64_t images) {
  const std::size_t image = network.pixels / static_cast<std::size_t>(network.batch);
  datasets::LoaderOptions options;
  options.threads = loader_threads();
  return datasets::batches_held(options) * in_pages(image * static_cast<std::size_t>(images)) +
         static_cast<std::size_t>(options.threads) * image / sizeof(float);
}

bool is_factored(const std::vector<Model::Linear>& factored, std::size_t parameter) {
  return std::any_of(factored.begin(), factored.end(), [&](const Model::Linear& layer) {
    return layer.weights == parameter || layer.bias == parameter;
  });
}

net::StoreSpec store_spec(const MemorySpec& spec, const net::Topology& topology, int rank,
                          const net::ShardMap& map, const std::vector<Model::Linear>& factored) {
  net::StoreSpec store;
  store.sync = spec.parallel.sync;
  store.workers = static_cast<int>(topology.workers().size());
  store.own = topology.worker_number(rank);
  store.average = spec.parallel.average > 0;
  store.optimiser = spec.optimiser;
  store.keeps_before = spec.checkpoints;
  store.packs = spec.parallel.wire.weights == net::Coding::lossless &&
                store.workers > (store.own >= 0 ? 1 : 0);
  store.leaves = [&factored](std::size_t p) { return is_factored(factored, p); };
  store.early_bytes = net::early_room_of(store.own >= 0, map.elements_of(rank) * sizeof(float),
                                         store.workers, net::usual_early_bytes);
  return store;
}

std::size_t coded_bytes_of(const MemorySpec& spec, const net::Topology& topology, int rank,
                           const net::ShardMap& map) {
  const net::WireFormat wire = net::wire_of(spec.parallel.wire, spec.parallel.sync);
  std::size_t bytes = 0;
  for (const int peer : topology.peers_of(rank))
    for (const net::Coding coding : {wire.weights, wire.gradients})
      if (coding != net::Coding::float32)
        bytes += coded_bytes(coding, std::max(map.longest_of(rank), map.longest_of(peer))) +
                 net::coding_slack;
  return bytes;
}

std::size_t ledger_bytes(std::size_t frames) {
  return 2 * frames * sizeof(net::FrameRecord);
}

}  // namespace duplex::tools
