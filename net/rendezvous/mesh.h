// The mesh of one rank: an authenticated socket to every rank that it exchanges weights with.
#pragma once
#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "net/ledger/frame_record.h"
#include "net/rendezvous/handshake.h"
#include "net/topology/topology.h"
#include "net/wire/frame_stream.h"
#include "net/wire/listener.h"

namespace duplex::net {

struct MeshSpec {
  Topology topology;
  int rank = 0;
  std::vector<Address> addresses;  ///< Where each rank listens, by rank. A worker of a central
                                   ///< server needs no address of its own.
  Identity identity;               ///< Everything that all ranks must agree on.
  Key key;                         ///< Empty: no key; the rank may then listen on loopback alone.
  ProtectionSpec protection;       ///< Of all frames behind the handshake.
  std::chrono::milliseconds timeout{60000};  ///< Time for all ranks to come.
  std::string congestion;                    ///< TCP_CONGESTION, such as "cubic"; empty: the
                                             ///< system's.
  /// Takes a line for the user, about who came and who was turned away.
  std::function<void(const std::string&)> log;
};

/// An open connection to a rank, after the handshake.
struct Link {
  int rank = -1;
  FrameStream stream;
  std::string peer;                    ///< "rank 2 (10.0.0.3:4711)", for messages.
  std::vector<FrameRecord> handshake;  ///< The ledger's records of the handshake's frames.
};

class Mesh {
 public:
  /// Listens, connects and shakes hands until every peer of this rank is there. The caller may have
  /// opened `listener` already (so that it can ask for port 0); otherwise join listens on
  /// addresses[rank] if any peer is to connect. Throws Error with Exit::timed_out, naming the ranks
  /// that are missing, or with Exit::failed for ranks that do not fit together, naming both sides.
  static Mesh join(MeshSpec spec, Listener listener = Listener());

  /// Tells every peer that comes within a quarter of a minute why this rank cannot start and so
  /// cannot join, so that peers need not wait for it. It says so first, by spec.log. `spec` must
  /// have topology, rank, addresses, job and key. Throws nothing.
  static void tell_cannot_start(const MeshSpec& spec, const AbortReason& reason) noexcept;

  int rank() const { return rank_; }
  const Topology& topology() const { return topology_; }
  std::vector<Link>& links() { return links_; }
  const CoordinatorTime& coordinator_time() const { return coordinator_time_; }

  /// A mesh of one rank, without connections.
  static Mesh alone() { return of({}, 0, {}); }
  /// A mesh of links that were made in another way, in order of rank, on this rank's own clock.
  static Mesh of(const Topology& topology, int rank, std::vector<Link> links);

 private:
  int rank_ = 0;
  Topology topology_;
  std::vector<Link> links_;
  CoordinatorTime coordinator_time_;
};

}  // namespace duplex::net
