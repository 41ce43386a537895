#include "tools/memory/memory_forecast.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <numeric>
#include <utility>

#include "core/error.h"
#include "tools/memory/fitting.h"
#include "tools/memory/part_memory.h"
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

/// Adds the first rank, that with the most memory and that with the least.
void add_different(std::vector<ForecastRank>& ranks, const std::vector<RankMemory>& all) {
  const auto [least, most] = std::minmax_element(
      all.begin(), all.end(),
      [](const RankMemory& a, const RankMemory& b) { return a.tight().sum() < b.tight().sum(); });
  for (auto each = all.begin(); each != all.end(); ++each)
    if (each == all.begin() || each == least || each == most) {
      ranks.emplace_back();
      ranks.back().memory = *each;
    }
}

}  // namespace

const NetworkMemory& Networks::known(const std::string& key, const Model& model,
                                     const NetworkCopies& copies, bool is_part) {
  const auto known = known_.find(key);
  if (known != known_.end()) return known->second;
  NetworkMemory memory = network_memory(model, computing_, copies);
  // Later networks find most of a library's pages there already, and need as many themselves; a
  // part may need more, since it gathers what it is sent. Plain loops have all of their memory in
  // it, and tell no other.
  if (!memory.operations.shared.empty() && code_)
    memory.code = is_part ? std::max(*code_, memory.code) : *code_;
  if (!code_) code_ = memory.code;
  return known_.emplace(key, std::move(memory)).first->second;
}

const NetworkMemory& Networks::of(std::int64_t batch) {
  return known(std::to_string(batch), model_, {batch, 1, true}, false);
}

const NetworkMemory& Networks::tested(std::int64_t batch) {
  return known("tested " + std::to_string(batch), model_, {batch, 1, false}, false);
}

const NetworkMemory& Networks::of_part(const NetworkPart& part, std::uint64_t count) {
  return known(std::to_string(count) + " of " + key_of(part, model_), part.model,
               {part.images, count, true}, true);
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

std::vector<RankMemory> TrainingMemory::of_parts(const ParallelSpec& parallel, int workers,
                                                 std::int64_t batch) {
  const MemorySpec spec = spec_of(parallel, workers, batch);
  const PartMemory memory(model_, spec, program_);
  const CutPart& cut = memory.cut();
  const std::int64_t tested = std::min(cut.samples(), batch);
  std::vector<RankMemory> ranks;
  for (int rank = 0; rank < workers; ++rank) {
    const NetworkPart part = cut.network().part(rank);
    ranks.push_back(memory.of_rank(rank, part, networks_.of_part(part, cut.in_flight(rank)),
                                   spec.tests ? &networks_.tested(tested) : nullptr));
  }
  return ranks;
}

std::vector<int> TrainingMemory::different_ranks(const ParallelSpec& parallel, int workers) {
  const MemorySpec spec = spec_of(parallel, workers, spec_.batch);
  const net::Topology topology = spec.topology();
  const int owner = greatest_owner(shard_map_of(model_, spec), topology.size);
  if (!parallel.central()) return {owner};
  return {topology.workers().front(), owner};
}

std::size_t TrainingMemory::most(const ParallelSpec& parallel, int workers) {
  if (parallel.cuts()) {
    const std::string key =
        std::to_string(workers) + " " + parallel.settings() + parallel.share_text();
    const auto known = most_of_parts_.find(key);
    if (known != most_of_parts_.end()) return known->second;
    std::size_t most = 0;
    for (const RankMemory& memory : of_parts(parallel, workers, spec_.batch))
      most = std::max(most, memory.tight().sum());
    return most_of_parts_[key] = most;
  }
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
  if (spec.memory.parallel.cuts()) {
    add_different(result.ranks,
                  training.of_parts(spec.memory.parallel, workers, spec.memory.batch));
    return result;
  }
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
