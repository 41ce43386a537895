// The specification of an exchange: its rule, what travels in which order, how long ranks wait.
#pragma once
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/optimiser.h"
#include "net/coding/coding.h"
#include "net/connection/receive_window.h"
#include "net/connection/state_inbox.h"
#include "net/exchange/checkpoint_calls.h"
#include "net/factors/factor_map.h"
#include "net/ledger/ledger.h"
#include "net/maps/map_route.h"
#include "net/store/store.h"
#include "net/topology/shard_map.h"

namespace duplex::net {

class ParameterExchange;

struct ExchangeSpec {
  Sync sync = Sync::join;
  /// Weights of the workers' gradients in the mean. Only workers of a synchronous exchange may have
  /// several slots.
  MeanSpec mean;
  /// Workers push weights, and the new weights are their mean; the optimiser is not used.
  bool average = false;
  /// Steps of the training for each of the exchange's, by which checkpoints are counted: more than
  /// one where weights are averaged.
  std::uint64_t round = 1;
  /// If false, an owner publishes its new weights together, when it has them all.
  bool overlap = true;
  /// An owner lets one worker at a time send its gradients, and sends weights to one at a time,
  /// each in the order in which they ask (thesis, 7.2).
  bool semaphore = false;
  /// Number of steps at the end of the run that trace() returns; 0: none, and nothing is recorded.
  std::uint64_t trace_steps = 0;
  Shards shards = Shards::even;
  std::optional<std::size_t> chunk_bytes;  ///< None: ShardMap's default.
  /// Bytes of early gradients, those that came before their turn to be added, that a dedicated
  /// server keeps; one of each, if that is more.
  std::size_t early_bytes = usual_early_bytes;
  /// The codings in which values cross the wire, those of the last weights apart, which are
  /// float32. All ranks have the same.
  WireFormat wire;
  /// The step of the last weights of a synchronous run; none: it is not known.
  std::optional<std::uint64_t> last_step;
  /// The ranks that train with each parameter, where a network is cut (ShardMap::among); empty: all
  /// workers train with all. The run is synchronous then, without a central server, and its last
  /// step is known, since the coordinator is sent the last weights of all parameters. All ranks
  /// have the same.
  std::vector<std::vector<int>> members;
  /// The maps that cross between ranks (MapTraffic), and the micro-batches of a step. All ranks
  /// have the same.
  std::vector<MapRoute> maps;
  std::uint64_t micro_batches = 1;
  /// The most micro-batches whose maps a rank has under way.
  std::uint64_t in_flight = 1;
  /// Linear layers whose gradients are exchanged as factors, in forward order. A synchronous run
  /// without a central server may have such layers; where the network is cut, those that train with
  /// one are the members of its parameters. All ranks have the same.
  std::vector<FactoredLayer> factored;
  /// Threads that multiply factors; for a replay the operations a second at which it waits for the
  /// products instead, otherwise 0.
  int factor_threads = 1;
  double replayed_flops = 0.0;
  OptimiserSpec optimiser;
  LearningRate rate;
  /// The step that this rank's training begins with, after a checkpoint; rounds where weights are
  /// averaged. Of an asynchronous run, the least of any worker on a rank that only serves.
  std::uint64_t first_step = 0;
  /// This is what an owner of an asynchronous run goes on from (StoreSpec).
  std::vector<std::uint64_t> first_steps;
  /// The steps of every worker's training, as a central server of an asynchronous run knows it;
  /// none: workers tell, and it believes them.
  std::optional<std::uint64_t> steps;
  /// The step before which each worker ends, where others have trained what is behind it; empty, or
  /// BatchPool::to_its_end: at the end of its training.
  std::vector<std::uint64_t> ends;
  std::vector<ChunkRecord> records;
  std::vector<Staleness> staleness_before;
  std::uint64_t last_checkpoint = 0;  ///< The number of the one that it goes on from.
  /// Owners keep each chunk as it was before its last update, too (Store::state).
  bool keeps_before = false;
  /// Fills in a chunk's part of the optimiser's state (StoreSpec::initial_state); may be empty.
  std::function<void(std::size_t chunk, const std::vector<float*>& state)> initial_state;
  /// Called when the exchange is there, before anything comes from a peer, so that what the other
  /// functions need can be set up. May be empty.
  std::function<void(ParameterExchange& exchange)> ready;
  /// Called when an owner is to copy its chunks (ParameterExchange::store): in a synchronous run on
  /// a rank that only serves, when all its chunks are of one step; in an asynchronous run on every
  /// owner, when all workers have marked the checkpoint. Training goes on when it returns. May be
  /// empty: the rank takes no snapshots.
  std::function<void(const CheckpointCall& call)> snapshot;
  /// Takes what other ranks send of their parts of checkpoints, where this rank keeps copies of
  /// them, or of a network that is cut, where it tests that; it is stopped when nothing more can
  /// come. May be null: it does neither.
  std::shared_ptr<StateInbox> state_inbox;
  /// Called many times a second on a rank that only serves, while it waits for the workers, by the
  /// thread that called ParameterExchange::finish. May be empty.
  std::function<void()> while_serving;
  /// The same on a worker of an asynchronous run that has ended its training before others, by the
  /// thread that called ParameterExchange::await_last_weights. May be empty.
  std::function<void()> while_ending;
  /// The timeout of every wait: for weights, for a gradient, for a frame to get through, for a
  /// heartbeat.
  std::chrono::milliseconds timeout{60000};
  LedgerPaths ledger;                           ///< Where the ledger's files lie.
  FrameSample ledger_frames;                    ///< The frames that the first of them has.
  std::function<void(const std::string&)> log;  ///< Takes a line for the user; may be empty.
  /// Takes a line about something that is wrong, which a user who wants to hear of nothing else
  /// wants to hear of; empty: `log` takes it.
  std::function<void(const std::string&)> warning;

  void warn(const std::string& line) const {
    if (warning)
      warning(line);
    else if (log)
      log(line);
  }
};

}  // namespace duplex::net
