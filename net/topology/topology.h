// The topology says which ranks of a run train, which hold weights, and who talks to whom.
#pragma once
#include <optional>
#include <vector>

#include "net/topology/shard_map.h"

namespace duplex::net {

/// More than any run has: a list of ranks that is longer is a mistake, and not worth its memory.
constexpr int most_ranks = 65536;

/// The ranks of a run and what each does. With a central server, one rank serves and does not
/// train, and every other is a worker connected to it alone; with a distributed server every rank
/// is both, and connected to every other.
struct Topology {
  ServerMode mode = ServerMode::distributed;
  int size = 1;    ///< Number of ranks, a dedicated server included.
  int server = 0;  ///< Rank of the central server.
  /// Where a network is cut, so that every rank is a worker: whether the first of the ranks that
  /// train with a parameter owns all of it, or each a share.
  ServerMode group = ServerMode::distributed;

  /// The rank whose clock the ledgers use and which gets the reports: the server, or rank 0.
  int coordinator() const { return mode == ServerMode::central ? server : 0; }
  bool is_worker(int rank) const { return mode == ServerMode::distributed || rank != server; }
  bool is_owner(int rank) const { return mode == ServerMode::distributed || rank == server; }
  bool connected(int a, int b) const { return a != b && (is_owner(a) || is_owner(b)); }
  /// Returns whether rank `a` waits for rank `b` to connect, rather than connecting to it.
  bool listens(int a, int b) const { return mode == ServerMode::central ? a == server : a < b; }
  std::vector<int> workers() const;           ///< Ranks that train, ascending.
  int worker_number(int rank) const;          ///< Its number among the workers; -1: it is none.
  std::vector<int> peers_of(int rank) const;  ///< Ranks connected to this one, ascending.
  /// The shard map of parameters with so many elements, in chunks of so many bytes; none:
  /// ShardMap's default. `members`: as ShardMap::among has them; empty: all workers train with all
  /// parameters. Throws Error(Exit::usage) for members and a central server.
  ShardMap shard_map(const std::vector<std::size_t>& counts, Shards shards,
                     std::optional<std::size_t> chunk_bytes,
                     const std::vector<std::vector<int>>& members = {}) const;
};

}  // namespace duplex::net
