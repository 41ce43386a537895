// The way in which workers train together (Appendix C.3): dist follows it, simulate plays it, and
// config.json tells it.
#pragma once
#include <cstdint>
#include <string>

#include "datasets/loader.h"
#include "net/store/store.h"
#include "net/topology/topology.h"
#include "tools/run_directory/run_config.h"

namespace duplex::tools {

struct ParallelSpec {
  net::Sync sync = net::Sync::join;
  net::ServerMode server = net::ServerMode::distributed;
  net::Shards shards = net::Shards::even;
  bool overlap = true;        ///< If false: receive all, compute, send all (the thesis's order).
  bool semaphore = false;     ///< A server receives from one worker at a time, and sends to one
                              ///< (7.2).
  std::uint64_t average = 0;  ///< Batches between averagings of the weights; 0: gradients are sent.

  bool central() const { return server == net::ServerMode::central; }
  bool splits() const { return sync == net::Sync::split; }
  /// The samples of each step that a worker trains on.
  datasets::Share share(std::int64_t batch, int worker, int workers) const;
  /// The central server is rank 0.
  net::Topology topology(int ranks) const { return {server, ranks, 0}; }

  /// One line of text: "sync join, overlap on, semaphore off, server distributed, shards even".
  std::string settings() const;
  /// Its part of config.json.
  ParallelConfig config(const net::Topology& topology) const;
};

}  // namespace duplex::tools
