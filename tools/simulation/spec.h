// The specification of a simulation, and its outcome.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "net/coding/coding.h"
#include "net/connection/receive_window.h"
#include "net/connection/send_order.h"
#include "net/factors/factor_map.h"
#include "net/store/store.h"
#include "net/store/straggler_tally.h"
#include "net/topology/shard_map.h"
#include "net/topology/topology.h"
#include "net/wire/protection.h"
#include "tools/simulation/cut_run.h"

namespace duplex::tools::simulation {

/// A layer, in forward order.
struct Layer {
  double forward = 0.0, backward = 0.0;   ///< Seconds of a whole batch.
  std::vector<std::uint32_t> parameters;  ///< Numbers of the trained ones.
  /// Seconds to bring its weights to where it computes, and its gradients away from there.
  double upload = 0.0, download = 0.0;
};

struct Loss {
  int rank = 0;
  double at = 0.0;  ///< Seconds.
};

/// Processor seconds that moving bytes takes at each end of a connection.
struct Moving {
  double send = 0.0, receive = 0.0;  ///< A byte.
  double frame = 0.0;                ///< A frame, beside its bytes.
};

struct Spec {
  net::Topology topology;
  net::Sync sync = net::Sync::join;
  bool overlap = true, semaphore = false;
  std::uint64_t average = 0;  ///< Batches between averagings of the weights; 0: gradients are sent.
  net::WireFormat wire;
  net::PackedParts packed;  ///< For lossless.
  /// Layers whose gradients are exchanged as factors; none: there are no such layers.
  std::optional<net::FactorMap> factors;
  /// Operations a second at which a rank multiplies factors; 0: that takes no time.
  double factor_rate = 0.0;
  net::Shards shards = net::Shards::even;
  std::optional<std::size_t> chunk_bytes;  ///< None: ShardMap's default.

  std::vector<std::size_t> counts;  ///< Elements, by parameter.
  std::vector<Layer> layers;
  /// The part of a batch that each slot of a worker computes in a step, by worker.
  std::vector<double> part;
  std::vector<int> slots;  ///< By worker; empty: each has one.
  int slots_of(std::size_t worker) const { return slots.empty() ? 1 : slots[worker]; }
  std::uint64_t steps = 1;  ///< Steps of every worker.
  /// The network is cut over the ranks, and `layers` does not count. Null: each worker has all of
  /// it.
  std::shared_ptr<const CutRun> cut;

  std::vector<double> rates;  ///< By rank: bytes a second of its link, in each direction.
  double latency = 0.0;       ///< Seconds from a frame's last byte sent to its last byte received.
  /// Bytes a second at which an owner adds gradients, or updates by them, one chunk at a time; 0:
  /// it takes no time.
  double owner_rate = 0.0;
  /// Bytes a second that all processors of a worker together seal or open, which its computing
  /// waits for; 0: frames are plain.
  double seal_rate = 0.0;
  net::Protection protection() const {
    return seal_rate > 0.0 ? net::Protection::sealed : net::Protection::none;
  }
  /// Processors of machines, which compute and move bytes (processors.h). Empty: moving bytes takes
  /// no time from computing.
  std::vector<int> machine_of;  ///< By rank.
  std::vector<double> cores;    ///< By machine.
  double threads = 1.0;         ///< That compute on a slot.
  Moving moving;
  std::vector<double> reading;  ///< By worker: processor seconds to read a step's images.
  /// The factor by which computing takes longer on a rank in a step; empty: no rank differs.
  std::function<double(int rank, std::uint64_t step)> straggler_factor;
  std::vector<Loss> losses;  ///< Ranks that vanish.

  /// Bytes that a link which was idle lets pass at once, in each direction, as a shaped one's token
  /// bucket does; cables let none.
  double burst = 0.0;
  /// Bytes that wait at a switch's port while more comes than goes; a sender has given them away,
  /// and later frames cannot overtake them. 0: none wait there, nor in the kernels. If connections
  /// meet at such a port, their windows are their shares, and have to grow first.
  double queue = 0.0;
  /// Standard deviation of the natural logarithm of a connection's share of such a port, drawn anew
  /// for every 512 KiB: how unequal TCP's shares are.
  double unfairness = 0.0;
  std::uint64_t seed = 1;  ///< Seed of what is drawn here.

  /// Bytes of early gradients, those that came before their turn, that a dedicated server keeps;
  /// one of each, if that is more.
  std::size_t early_bytes = net::usual_early_bytes;

  /// Says how long a worker keeps its turn with nothing to send.
  std::chrono::nanoseconds linger = net::SendOrder::linger;
  /// Events within so many seconds count as one moment for sharing the links.
  double resolution = 1e-9;
};

struct StepTimes {
  /// From the end of the step before to the moment at which its last gradient was handed over.
  double begin = 0.0, end = 0.0;
  double computing = 0.0, awaiting = 0.0;
};

struct Outcome {
  std::vector<std::vector<StepTimes>> steps;  ///< By worker; those of a lost one as far as it came.
  /// The moment at which the last gradient was applied, which is the time that (4.4) to (4.21)
  /// give.
  double trained = 0.0;
  double ended = 0.0;  ///< When every worker had its last weights.
  std::vector<int> lost;
  /// The reason why the run ended early, if it did.
  std::optional<std::string> failure;
  std::vector<net::Store::Staleness> staleness;  ///< In asynchronous runs: by worker, then step.
  /// In synchronous runs: for whom owners waited, by the owner's rank; empty where nothing of it is
  /// recorded.
  std::vector<std::vector<net::StragglerTime>> stragglers;
  std::uint64_t frames = 0, sharings = 0;
};

}  // namespace duplex::tools::simulation
