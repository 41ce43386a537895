// The mesh of one rank: an authenticated socket to every rank that it exchanges weights with.
#pragma once
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
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
  /// So long a rank is tried again whose host's name has no address: the names of containers
  /// come to the name server one after the other, when they start.
  std::chrono::milliseconds name_limit{20000};
  /// The link that all connections to ranks share, from the end of the handshake on; none: they go
  /// as fast as they can.
  std::shared_ptr<LinkRate> link_rate;
  /// After all have come, the mesh keeps listening, so that lost ranks can come back (Mesh::door).
  bool takes_back = false;
  std::string congestion;  ///< TCP_CONGESTION, such as "cubic"; empty: the
                           ///< system's.
  /// Is called now and then while ranks meet; what it throws ends the meeting. Empty: nothing is.
  std::function<void()> check;
  /// Takes a line for the user, about who came and who was turned away.
  std::function<void(const std::string&)> log;
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

/// This rank as its handshakes present it, with a clock that begins now.
Self self_of(const MeshSpec& spec);

/// An open connection to a rank, after the handshake.
struct Link {
  int rank = -1;
  FrameStream stream;
  std::string peer;                    ///< "rank 2 (10.0.0.3:4711)", for messages.
  std::vector<FrameRecord> handshake;  ///< The ledger's records of the handshake's frames.
};

/// Where lost ranks of a run that goes on come back.
class Door {
 public:
  Door(MeshSpec spec, Listener listener, std::int64_t epoch_ns)
      : spec_(std::move(spec)), listener_(std::move(listener)), epoch_ns_(epoch_ns) {}

  /// Waits for a rank for which `awaited` is true, while `over` is false; any thread may call both.
  /// It has shaken hands as in Mesh::join. Whoever does not fit is turned away. None: it is over.
  std::optional<Link> next(const std::function<bool(int rank)>& awaited,
                           const std::function<bool()>& over);

 private:
  MeshSpec spec_;
  Listener listener_;
  const std::int64_t epoch_ns_;
  std::vector<Link> came_;  ///< Links that are still to be returned.
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
  /// Null unless MeshSpec::takes_back.
  std::unique_ptr<Door> take_door() { return std::move(door_); }

  /// A mesh of one rank, without connections.
  static Mesh alone() { return of({}, 0, {}); }
  /// A mesh of links that were made in another way, in order of rank, on this rank's own clock.
  static Mesh of(const Topology& topology, int rank, std::vector<Link> links);

 private:
  int rank_ = 0;
  Topology topology_;
  std::vector<Link> links_;
  CoordinatorTime coordinator_time_;
  std::unique_ptr<Door> door_;
};

}  // namespace duplex::net
