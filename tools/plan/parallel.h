// The way in which workers train together (Appendix C.3): dist follows it, simulate plays it, and
// config.json tells it.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "datasets/loader.h"
#include "net/coding/coding.h"
#include "net/store/store.h"
#include "net/topology/topology.h"
#include "tools/run_directory/run_config.h"

namespace duplex::tools {

/// How the samples of a step are shared out among workers.
enum class Sharing {
  given,               ///< As ParallelSpec::shares has it.
  by_speed,            ///< In proportion to speeds, which have to be found first.
  by_speed_if_uneven,  ///< The same, unless they are nearly alike.
};

/// Shares in proportion to the speeds of workers, which need so many seconds for an image; empty if
/// `unless_alike` and none is a twentieth faster than another.
std::vector<std::int64_t> proportional_shares(const std::vector<double>& seconds,
                                              bool unless_alike);

/// Says whether the gradients of linear layers are exchanged as their factors.
enum class Factors {
  off,
  on,         ///< Of every linear layer.
  automatic,  ///< Of those whose factors are fewer bytes than a gradient and weights.
};

/// "off", "on" or "auto".
const char* name_of(Factors factors);
Factors parse_factors(const std::string& text);  ///< Throws Error(Exit::usage).

struct ParallelSpec {
  net::Sync sync = net::Sync::join;
  net::ServerMode server = net::ServerMode::distributed;
  net::Shards shards = net::Shards::even;
  bool overlap = true;        ///< If false: receive all, compute, send all (the thesis's order).
  bool semaphore = false;     ///< A server receives from one worker at a time, and sends to one
                              ///< (7.2).
  std::uint64_t average = 0;  ///< Batches between averagings of the weights; 0: gradients are sent.
  net::WireFormat wire;       ///< The codings of weights and gradients on the wire.
  Factors factors = Factors::off;
  /// How the samples of a step are shared out, by worker, in proportion to these; empty: evenly.
  std::vector<std::int64_t> shares;
  Sharing sharing = Sharing::given;

  bool central() const { return server == net::ServerMode::central; }
  /// Whether workers overlap computing and sending, shards are even, and there is no semaphore.
  bool is_usual() const { return overlap && !semaphore && shards == net::Shards::even; }
  /// Returns whether factors can be exchanged so: every rank trains, and updates at the same steps.
  bool takes_factors() const {
    return sync != net::Sync::none && !central() && average == 0 && !semaphore;
  }
  /// Returns whether another way differs from it in overlap, semaphore, shards and shares alone.
  bool is_variant_of(const ParallelSpec& other) const {
    return sync == other.sync && server == other.server && average == other.average &&
           wire == other.wire && factors == other.factors;
  }
  bool splits() const { return sync == net::Sync::split; }
  /// The samples of each step that a worker trains on. Only the first `workers` of `shares` count.
  /// Throws Error(Exit::usage) where a worker would have none of them.
  datasets::Share share(std::int64_t batch, int worker, int workers) const;
  /// The central server is rank 0.
  net::Topology topology(int ranks) const { return {server, ranks, 0}; }

  /// One line of text: "sync join, overlap on, semaphore off, server distributed, shards even", and
  /// ", wire bf16" where that is not float32. A training may go on with other shares, which it does
  /// not tell.
  std::string settings() const;
  /// ", share 3:2:1"; empty where all have the same.
  std::string share_text() const;
  /// Throws Error(Exit::usage), beginning with `command`, if there are shares, and not of so many
  /// workers.
  void check_shares(int workers, const std::string& command) const;
  /// Its part of config.json. `batch`: as share() takes it.
  ParallelConfig config(const net::Topology& topology, std::int64_t batch) const;
};

}  // namespace duplex::tools
