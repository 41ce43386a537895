// The forecast of the memory that a training takes: alone, and on each rank of several.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "layers/parts/network_part.h"
#include "tools/memory/rank_memory.h"

namespace duplex::tools {

/// The memory of a model's network, by batch, and of its parts; each is looked at once.
class Networks {
 public:
  Networks(const Model& model, const DeviceSpec& computing)
      : model_(model), computing_(computing) {}

  const NetworkMemory& of(std::int64_t batch);
  /// The network for inference only.
  const NetworkMemory& tested(std::int64_t batch);
  /// So many networks of a part, with activations of their own.
  const NetworkMemory& of_part(const NetworkPart& part, std::uint64_t count);

 private:
  const NetworkMemory& known(const std::string& key, const Model& model,
                             const NetworkCopies& copies, bool is_part);

  const Model model_;
  const DeviceSpec computing_;
  std::map<std::string, NetworkMemory> known_;
  std::optional<std::size_t> code_;
};

/// What trainings of a model take, whatever the way in which workers train together. Make it before
/// anything else uses a device in this process, whose own memory is part of the answer.
class TrainingMemory {
 public:
  /// `spec`: all but how, and how many, train together.
  TrainingMemory(const Model& model, MemorySpec spec);

  RankMemory alone(std::int64_t batch);
  /// The most that a rank takes of the memory that is tight: the GPUs', or on CPUs the machines'.
  std::size_t most(const ParallelSpec& parallel, int workers);
  /// The ranks that differ in what they do, by rank; of those that do the same, the one that owns
  /// most.
  std::vector<int> different_ranks(const ParallelSpec& parallel, int workers);
  RankMemory of_rank(const ParallelSpec& parallel, int workers, int rank, std::int64_t batch);
  /// All ranks of a training whose network is cut. Throws Error(usage) where it cannot be cut so.
  std::vector<RankMemory> of_parts(const ParallelSpec& parallel, int workers, std::int64_t batch);

  const NetworkMemory& network(std::int64_t batch) { return networks_.of(batch); }

 private:
  MemorySpec spec_of(const ParallelSpec& parallel, int workers, std::int64_t batch) const;

  const Model model_;
  const MemorySpec spec_;
  const ProgramMemory program_;
  Networks networks_;
  std::map<std::string, std::size_t> most_of_parts_;  ///< By what most() was asked.
};

/// One process and, where a limit was given, the largest batch with which it stays below.
struct ForecastRank {
  RankMemory memory;
  bool depends_on_batch = true;         ///< A central server's does not.
  bool fits = true;                     ///< Whether there is such a batch at all.
  std::optional<std::int64_t> largest;  ///< Images, as --batch counts them.
  std::int64_t least_batch = 1;         ///< The least with which every worker has an image.
  std::size_t least = 0;                ///< Bytes with that batch, where there was a limit.
};

struct MemoryForecast {
  NetworkMemory network;  ///< Of the process that trains alone.
  std::vector<ForecastRank> ranks;
};

/// What is asked of a forecast.
struct ForecastSpec {
  MemorySpec memory;
  /// Servers whose ranks are wanted beside the process that trains alone; memory.parallel.server is
  /// not looked at.
  std::vector<net::ServerMode> servers;
  /// Bytes of the GPU's memory or, on a CPU, of the host's; none: no batch is looked for.
  std::optional<std::size_t> limit;
};

/// Call it before anything else uses a device in this process (TrainingMemory). Throws Error as
/// Network does.
MemoryForecast forecast_memory(const Model& model, const ForecastSpec& spec);

}  // namespace duplex::tools
