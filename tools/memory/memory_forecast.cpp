#include "tools/memory/memory_forecast.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <numeric>
#include <utility>

#include "core/error.h"
#include "tools/memory/fitting.h"
#include "tools/plan/factored_layers.h"

namespace duplex::tools {
namespace {

using ForBatch = std::function<RankMemory(std::int64_t batch)>;

/// A batch for which there is no network, since a tensor would be too large, needs too much.
std::size_t needed(const ForBatch& memory, std::int64_t batch, std::int64_t least_batch) {
  try {
    return memory(batch).tight().sum();
  } catch (const Error&) {
    if (batch <= least_batch) throw;
    return std::numeric_limits<std::size_t>::max();
  }
}

/// The least batch of which the shares of all workers are an image or more before they are rounded.
std::int64_t least_batch_of(const ParallelSpec& parallel, int workers) {
  if (parallel.shares.empty()) return parallel.splits() ? parallel.all_slots(workers) : 1;
  const std::vector<std::int64_t>& shares = parallel.shares;
  const std::int64_t all = std::accumulate(shares.begin(), shares.end(), std::int64_t{0});
  const std::int64_t least =
      *std::min_element(shares.begin(), shares.end()) * (parallel.splits() ? 1 : workers);
  // Each slot has a part of a batch that is split.
  return (all + least - 1) / least * (parallel.splits() ? parallel.slots_of(0) : 1);
}

/// `least_batch`: that of a step in which every worker has an image; 0: the process has none.
ForecastRank forecast(const ForecastSpec& spec, const ForBatch& memory, std::int64_t least_batch) {
  ForecastRank rank;
  rank.memory = memory(spec.memory.batch);
  rank.depends_on_batch = least_batch > 0;
  if (!spec.limit) return rank;
  if (!rank.depends_on_batch) {
    rank.least = is_gpu(spec.memory.computing) ? 0 : rank.memory.host.sum();
    rank.fits = rank.least <= *spec.limit;
    return rank;
  }
  // The search counts from the least batch on, as from 1.
  const auto batch_of = [&](std::int64_t number) { return least_batch - 1 + number; };
  const auto needs = [&](std::int64_t number) {
    return needed(memory, batch_of(number), least_batch);
  };
  rank.least_batch = least_batch;
  rank.least = needs(1);
  const auto number = largest_batch(*spec.limit, spec.memory.batch - least_batch + 1, needs);
  rank.fits = number.has_value();
  if (number) rank.largest = batch_of(*number);
  return rank;
}

int greatest_owner(const net::ShardMap& map, int ranks) {
  std::vector<std::size_t> owned(static_cast<std::size_t>(ranks), 0);
  for (std::size_t i = 0; i < map.chunks(); ++i)
    owned[static_cast<std::size_t>(map[i].owner)] += map[i].count;
  return static_cast<int>(std::max_element(owned.begin(), owned.end()) - owned.begin());
}

}  // namespace

const NetworkMemory& Networks::of(std::int64_t batch) {
  const auto known = known_.find(batch);
  if (known != known_.end()) return known->second;
  NetworkMemory memory = network_memory(model_, computing_, batch);
  // Later networks find most of a library's pages there already. Plain loops have all of their
  // memory in it, and tell no other.
  if (!memory.operations.shared.empty()) memory.code = code_.value_or(memory.code);
  if (!code_) code_ = memory.code;
  return known_.emplace(batch, std::move(memory)).first->second;
}

TrainingMemory::TrainingMemory(const Model& model, MemorySpec spec)
    : model_(model),
      spec_(std::move(spec)),
      program_(program_memory(spec_.computing)),
      networks_(model, spec_.computing) {}

MemorySpec TrainingMemory::spec_of(const ParallelSpec& parallel, int workers,
                                   std::int64_t batch) const {
  MemorySpec spec = spec_;
  spec.parallel = parallel;
  spec.workers = workers;
  spec.batch = batch;
  return spec;
}

RankMemory TrainingMemory::alone(std::int64_t batch) {
  return memory_alone(spec_, networks_.of(batch), program_);
}

RankMemory TrainingMemory::of_rank(const ParallelSpec& parallel, int workers, int rank,
                                   std::int64_t batch) {
  const MemorySpec spec = spec_of(parallel, workers, batch);
  const bool trains = spec.topology().is_worker(rank);
  std::vector<std::size_t> samples;
  for (int worker = 0; worker < spec.workers; ++worker)
    samples.push_back(static_cast<std::size_t>(spec.images_of(worker)));
  return memory_of_rank(spec, rank, shard_map_of(model_, spec),
                        factored_layers(model_, spec.parallel, samples, "nets"),
                        trains ? networks_.of(spec.images()) : NetworkMemory(), program_);
}

std::vector<int> TrainingMemory::different_ranks(const ParallelSpec& parallel, int workers) {
  const MemorySpec spec = spec_of(parallel, workers, spec_.batch);
  const net::Topology topology = spec.topology();
  const int owner = greatest_owner(shard_map_of(model_, spec), topology.size);
  if (!parallel.central()) return {owner};
  return {topology.workers().front(), owner};
}

std::size_t TrainingMemory::most(const ParallelSpec& parallel, int workers) {
  std::size_t most = 0;
  for (const int rank : different_ranks(parallel, workers)) {
    const RankMemory memory = of_rank(parallel, workers, rank, spec_.batch);
    most = std::max(most, is_gpu(spec_.computing) ? memory.device.sum() : memory.host.sum());
  }
  return most;
}

MemoryForecast forecast_memory(const Model& model, const ForecastSpec& spec) {
  TrainingMemory training(model, spec.memory);
  MemoryForecast result;
  result.network = training.network(spec.memory.batch);
  if (spec.limit && result.network.operations.shared.empty() && !is_gpu(spec.memory.computing))
    throw Error(
        "nets: --fits needs oneDNN or --device cuda: plain loops would take the memory of every "
        "batch that is tried",
        Exit::usage);
  result.ranks.push_back(forecast(
      spec, [&](std::int64_t batch) { return training.alone(batch); }, 1));
  const int workers = spec.memory.workers;
  for (const net::ServerMode server : spec.servers) {
    ParallelSpec parallel = spec.memory.parallel;
    parallel.server = server;
    const net::Topology topology = parallel.topology(workers + (parallel.central() ? 1 : 0));
    for (const int rank : training.different_ranks(parallel, workers)) {
      const std::int64_t least = least_batch_of(parallel, workers);
      result.ranks.push_back(forecast(
          spec,
          [&](std::int64_t batch) { return training.of_rank(parallel, workers, rank, batch); },
          topology.is_worker(rank) ? least : 0));
    }
  }
  return result;
}

}  // namespace duplex::tools
