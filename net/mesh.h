// The connections of one run: who is who, and one authenticated socket to every rank that this one
// exchanges weights with.
#pragma once
#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "net/handshake.h"
#include "net/ledger.h"
#include "net/listener.h"
#include "net/topology.h"

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

  int rank() const { return rank_; }
  const Topology& topology() const { return topology_; }
  std::vector<Link>& links() { return links_; }
  const HubTime& hub_time() const { return hub_time_; }

  /// A mesh of one: no connections.
  static Mesh alone();

 private:
  int rank_ = 0;
  Topology topology_;
  std::vector<Link> links_;
  HubTime hub_time_;
};

}  // namespace duplex::net
