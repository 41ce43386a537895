// The memory that the ranks of a training take, by what they do in it.
#pragma once
#include <array>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "core/optimiser.h"
#include "layers/model.h"
#include "tools/memory/network_memory.h"
#include "tools/memory/program_memory.h"
#include "tools/plan/parallel.h"
#include "tools/setup/device_spec.h"

namespace duplex::tools {

/// What is asked about.
struct MemorySpec {
  DeviceSpec computing;
  std::int64_t batch = 32;  ///< Images, as --batch of local and dist has them.
  OptimiserSpec optimiser;
  ParallelSpec parallel;
  int workers = 2;
  bool tests = false;         ///< The network is tested between its steps, and after them.
  bool checkpoints = false;   ///< Checkpoints are written while the training goes on.
  bool averages = false;      ///< Those who train keep a moving average of the weights (--ema).
  std::size_t gpu_bytes = 0;  ///< Memory of the GPU; 0: it is not known.

  net::Topology topology() const;
  /// The images of a step that a worker has, at most: its slots have as many as one of them, also
  /// where dist would refuse the batch since they do not share it evenly.
  std::int64_t images_of(int worker) const;
  /// The images of a step that each slot of the worker with the most of them has.
  std::int64_t images() const;
  /// The slots of the worker with the most of them. Each has a network, on a GPU of its own or side
  /// by side in the host's memory.
  std::size_t slots() const;
};

/// What memory is for.
enum class Use {
  program,         ///< The program itself and its libraries.
  code,            ///< What operations are: oneDNN's code and tables, plain loops' memory.
  weights,         ///< The network's, with running statistics.
  gradients,       ///< The network's.
  optimiser,       ///< The state of an optimiser that updates the network's weights.
  activations,     ///< With the gradients by them.
  kept,            ///< What operations keep from forward to backward.
  workspace,       ///< Operations share it, and parameters on their way between layouts. oneDNN
                   ///< may reserve a part that it does not touch.
  engines,         ///< On a GPU: what an engine of cuDNN may take, at most.
  batches,         ///< Images that are read ahead, as floats.
  host_weights,    ///< Those that are exchanged, in host memory.
  host_gradients,  ///< Likewise.
  owned,           ///< What an owner's store has: optimiser's state, asynchronous weights.
  received,        ///< Gradients that have come and are not in the weights yet, at most.
  wire,            ///< Buffers of connections, and the ledger's.
  checkpoint,      ///< Copies for checkpoints.
  saved,           ///< A parameter on its way into a file.
  average,         ///< The moving average of the weights; these, while it takes their place.
  sums,            ///< Gradients that are added up over micro-batches.
  maps             ///< Maps of a network that is cut, and their gradients, at most.
};
constexpr std::size_t uses = 20;
/// "activations and their gradients".
const char* name_of(Use use);

/// Bytes by their use.
class MemoryUse {
 public:
  std::size_t& operator[](Use use) { return bytes_[static_cast<std::size_t>(use)]; }
  std::size_t operator[](Use use) const { return bytes_[static_cast<std::size_t>(use)]; }
  std::size_t sum() const;

 private:
  std::array<std::size_t, uses> bytes_{};
};

/// The most that one process takes at a time.
struct RankMemory {
  /// "alone", "worker", "worker, owner", "central server"; "rank 2" where the network is cut.
  std::string role;
  MemoryUse host;
  MemoryUse device;  ///< Of a GPU; nothing on a CPU.
  std::string when;  ///< "training", "saving", "testing": when it is that much.

  /// The memory that the batch has to fit into: the GPU's where there is one, else the host's.
  const MemoryUse& tight() const { return device.sum() > 0 ? device : host; }
};

/// A process that trains alone, with the network of its batch.
RankMemory memory_alone(const MemorySpec& spec, const NetworkMemory& network,
                        const ProgramMemory& program);
/// One rank of several. `network` is that of images(); a central server needs none of it.
/// `map` is the topology's, of the model's parameters; `factored` are the layers whose gradients
/// are exchanged as factors.
RankMemory memory_of_rank(const MemorySpec& spec, int rank, const net::ShardMap& map,
                          const std::vector<Model::Linear>& factored, const NetworkMemory& network,
                          const ProgramMemory& program);

/// The shard map of a model's parameters, as dist cuts them.
net::ShardMap shard_map_of(const Model& model, const MemorySpec& spec);

}  // namespace duplex::tools
