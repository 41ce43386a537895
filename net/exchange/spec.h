// The specification of an exchange: its rule, what travels in which order, how long ranks wait.
#pragma once
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/optimiser.h"
#include "net/connection/receive_window.h"
#include "net/store/store.h"
#include "net/topology/shard_map.h"

namespace duplex::net {

struct ExchangeSpec {
  Sync sync = Sync::join;
  /// Samples by which a worker's gradient is weighted in the mean, by worker in rank order; empty:
  /// all count the same.
  std::vector<std::int64_t> samples;
  /// Workers push weights, and the new weights are their mean; the optimiser is not used.
  bool average = false;
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
  OptimiserSpec optimiser;
  LearningRate rate;
  /// The timeout of every wait: for weights, for a gradient, for a frame to get through, for a
  /// heartbeat.
  std::chrono::milliseconds timeout{60000};
  std::string ledger_path;                      ///< Path of the ledger's CSV; empty: none.
  std::function<void(const std::string&)> log;  ///< Takes a line for the user; may be empty.
};

}  // namespace duplex::net
