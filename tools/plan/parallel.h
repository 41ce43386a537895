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

/// The strategies that cut a network, by name: "owt", "filter", "pipeline", "hybrid", "hypergraph".
/// (data parallelism cuts none.)
const std::vector<std::string>& cutting_strategies();

/// For each stage from a rank's on, so many micro-batches may have begun there and not ended,
/// unless another number is given: one is computed, and one is under way.
constexpr std::uint64_t usual_in_flight = 2;

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
  /// Slots of each worker: devices, or parts of the cores, on which it trains a part of its samples
  /// each. Their gradients are added up before any leaves the machine. Empty: each has one.
  std::vector<int> slots;

  /// The way in which the network is cut over the ranks: owt, filter, pipeline, hybrid or
  /// hypergraph; empty: each worker has all of it.
  std::string strategy;
  std::string stages;               ///< Of a pipeline, as parse_stages() takes them.
  std::uint64_t micro_batches = 1;  ///< Of a step, where the network is cut.
  /// The most micro-batches, for each stage from a rank's on, that are begun there and not ended.
  std::uint64_t in_flight = usual_in_flight;

  bool cuts() const { return !strategy.empty(); }
  /// Returns whether one rank serves and does not train.
  bool central() const { return server == net::ServerMode::central && !cuts(); }
  /// Whether workers overlap computing and sending, shards are even, and there is no semaphore.
  bool is_usual() const { return overlap && !semaphore && shards == net::Shards::even; }
  /// Returns whether factors can be exchanged so: every rank trains, and updates at the same steps.
  bool takes_factors() const {
    return sync != net::Sync::none && !central() && average == 0 && !semaphore;
  }
  /// Returns whether another way differs from it in overlap, semaphore, shards and shares alone.
  bool is_variant_of(const ParallelSpec& other) const {
    return sync == other.sync && server == other.server && average == other.average &&
           wire == other.wire && factors == other.factors && strategy == other.strategy &&
           stages == other.stages && micro_batches == other.micro_batches &&
           in_flight == other.in_flight;
  }
  /// Returns whether a worker may have several slots: all of them wait for the same weights, and
  /// their gradients can be added up.
  bool takes_slots() const { return sync != net::Sync::none && average == 0; }
  int slots_of(int worker) const {
    return slots.empty() ? 1 : slots[static_cast<std::size_t>(worker)];
  }
  /// The slots of the first `workers` workers together.
  int all_slots(int workers) const;
  /// Batches that the first `workers` workers together train on in a step.
  int batches_a_step(int workers) const { return splits() ? 1 : all_slots(workers); }
  bool splits() const { return sync == net::Sync::split; }
  /// The samples of each step that a worker trains on, and those of one of its slots, of which each
  /// has as many. Only the first `workers` of `shares` count. Throws Error(Exit::usage) where a
  /// worker would have none of them, or cannot deal them out evenly to its slots. Where the network
  /// is cut, shares are of the work, and of the samples all have the same, one at least.
  datasets::Share share(std::int64_t batch, int worker, int workers) const;
  datasets::Share slot_share(std::int64_t batch, int worker, int slot, int workers) const;
  /// The central server is rank 0. Where the network is cut, there is none, and the first rank of
  /// those that train with a parameter may be its server.
  net::Topology topology(int ranks) const {
    return {cuts() ? net::ServerMode::distributed : server, ranks, 0,
            cuts() ? server : net::ServerMode::distributed};
  }

  /// One line of text: "sync join, overlap on, semaphore off, server distributed, shards even", and
  /// ", wire bf16" where that is not float32. A training may go on with other shares, which it does
  /// not tell.
  std::string settings() const { return exchange_settings() + cut_text(); }
  /// The same without cut_text(): a training may also go on with the network cut in another way.
  std::string exchange_settings() const;
  /// ", strategy pipeline, stages 6:2, micro-batches 8"; empty where the network is not cut.
  std::string cut_text() const;
  /// ", share 3:2:1" and ", slots 4:1"; empty where all have the same, and one slot.
  std::string share_text() const;
  /// Throws Error(Exit::usage), beginning with `command`, if there are shares, and not of so many
  /// workers, or if workers have slots that cannot be.
  void check_shares(int workers, const std::string& command) const;
  /// The flags that cut the network so: "--strategy", "pipeline", "--micro-batches", "8", and those
  /// of factors and shares; none: it is not cut.
  std::vector<std::string> cut_flags() const;
  /// Throws Error(Exit::usage), beginning with `command`, for what a run whose network is cut does
  /// not do, if it is cut.
  void check_cut(const std::string& command) const;
  /// Its part of config.json. `batch`: as share() takes it.
  ParallelConfig config(const net::Topology& topology, std::int64_t batch) const;
};

}  // namespace duplex::tools
