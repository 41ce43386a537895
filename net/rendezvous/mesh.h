// The connections of one run: who is who, and one authenticated socket to every rank that this one
// exchanges weights with.
#pragma once
#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "net/ledger/ledger.h"
#include "net/rendezvous/handshake.h"
#include "net/topology/topology.h"
#include "net/wire/listener.h"

namespace duplex::net {

struct MeshSpec {
  Topology topology;
  int rank = 0;
  std::vector<Address> addresses;  ///< By rank, where each listens. A worker of a central server
                                   ///< needs no address of its own.
  Identity identity;               ///< What every rank must agree on.
  Key key;                         ///< Empty: no key; then only loopback may be listened on.
  std::chrono::milliseconds timeout{60000};  ///< For all ranks to come.
  std::string congestion;                    ///< TCP_CONGESTION, e.g. "cubic"; empty: the system's.
  std::function<void(const std::string&)>
      log;  ///< A line for the user: who came, who was turned away.
};

/// An open connection to a rank, handshake done.
struct Link {
  int rank = -1;
  Socket socket;
  std::string peer;                    ///< "rank 2 (10.0.0.3:4711)", for messages.
  std::vector<FrameRecord> handshake;  ///< The ledger's records of the frames that made it.
};

class Mesh {
 public:
  /// Listens, connects and shakes hands until every peer of this rank is there. `listener` may be
  /// given ready-made (so that port 0 can be asked for); else it listens on addresses[rank] if any
  /// peer is to connect. Throws Error: Exit::timed_out naming the ranks that are missing,
  /// Exit::failed for ranks that do not fit together, naming both sides.
  static Mesh join(MeshSpec spec, Listener listener = Listener());

  /// For a rank that cannot start, and so cannot join: tells every peer that comes within `limit`
  /// why, so that they need not wait for it. Of `spec` it needs topology, rank, addresses, job and
  /// key. Throws nothing.
  static void tell_cannot_start(const MeshSpec& spec, const std::string& reason,
                                std::chrono::milliseconds limit) noexcept;

  int rank() const { return rank_; }
  const Topology& topology() const { return topology_; }
  std::vector<Link>& links() { return links_; }
  const CoordinatorTime& coordinator_time() const { return coordinator_time_; }

  /// A mesh of one: no connections.
  static Mesh alone();

 private:
  int rank_ = 0;
  Topology topology_;
  std::vector<Link> links_;
  CoordinatorTime coordinator_time_;
};

}  // namespace duplex::net
