// How ranks exchange: the rule, what travels, in what order, how long is waited.
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
  /// By worker, in rank order: what its gradient counts in the mean; empty: all the same.
  std::vector<std::int64_t> samples;
  /// What is pushed are weights, and the new weights are their mean; the optimiser is not used.
  bool average = false;
  /// Off: an owner publishes its new weights together, when it has them all.
  bool overlap = true;
  /// An owner lets one worker at a time send its gradients, and sends weights to one at a time,
  /// each in the order in which they ask (thesis, 7.2).
  bool semaphore = false;
  /// Steps at the end of the run that trace() tells of; 0: none, and nothing is recorded for it.
  std::uint64_t trace_steps = 0;
  Shards shards = Shards::even;
  std::optional<std::size_t> chunk_bytes;  ///< None: ShardMap's default.
  /// What a dedicated server keeps of gradients that came before their turn to be added, if one of
  /// each is not more.
  std::size_t early_bytes = usual_early_bytes;
  OptimiserSpec optimiser;
  LearningRate rate;
  /// For every wait: for weights, for a gradient, for a frame to get through, for a sign of life.
  std::chrono::milliseconds timeout{60000};
  std::string ledger_path;                      ///< Where the ledger's CSV goes; empty: nowhere.
  std::function<void(const std::string&)> log;  ///< A line for the user; may be empty.
};

}  // namespace duplex::net
