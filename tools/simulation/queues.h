// The queues in hosts and in the switch's ports, and their effect on connections: how many bytes
// later frames cannot overtake, which part of a port each connection has, whom it waits for, and
// how fast acknowledgements let it go.
#pragma once
#include <cstdint>
#include <vector>

#include "net/topology/shard_map.h"
#include "tools/simulation/fluid.h"
#include "tools/simulation/share.h"
#include "tools/simulation/spec.h"

namespace duplex::tools::simulation {

/// If Spec has no queue, nothing waits, and nothing here has an effect.
class Queues {
 public:
  using Index = Fluid::Index;
  struct Ends {
    int from = -1, to = -1;
  };

  /// The queues of flows 0, 1, ... of `fluid`, between the ranks in `ends`. `spec` and `fluid` must
  /// outlive it.
  Queues(const Spec& spec, const net::ShardMap& map, const std::vector<Ends>& ends, Fluid& fluid);

  /// Returns whether a connection that has bytes to send already takes more.
  bool has_room(Index index) const;
  void hand_over(Index index, double bytes);

  /// Seconds that a frame waits in a port behind bytes that others have there by now; 0 if its
  /// connection had no pause, since it is among them already.
  double behind(Index index, double now) const;
  /// A frame of the connection leaves from now on.
  void begin(Index index, double now);
  /// A frame has passed.
  void sent(Index index, double bytes);
  /// The receiver has stopped taking bytes in.
  void hold(Index index);
  /// The connection has nothing to send.
  void pause(Index index);
  /// Connections that may wait in the port to a rank, if nobody sends there; otherwise none.
  const std::vector<Index>& let_through(int to) const;

  /// Tells connections how fast acknowledgements let them go, if that has changed.
  void limit();

 private:
  struct Connection {
    Ends ends;
    bool sends = false;
    double handed = 0.0;  ///< Bytes handed to the kernel.
    double waits = 0.0;   ///< Part of them that acknowledgements wait behind.
    Share share;
  };
  /// The bytes that wait for a dedicated server's connections of one direction.
  struct Waiting {
    int connections = 0;
    double bytes = 0.0;
    double seconds = 0.0;  ///< Time that they take, as the other direction was told.
  };

  bool is_gradients(const Connection& connection) const {
    return connection.ends.to == spec_.topology.server;
  }
  const Waiting& opposite(const Connection& connection) const {
    return is_gradients(connection) ? weights_ : gradients_;
  }
  void count(Index index);

  const Spec& spec_;
  Fluid& fluid_;
  std::vector<Connection> connections_;
  std::vector<std::vector<Index>> meeting_;  ///< By rank: those that meet in the port to it, if
                                             ///< connections differ.
  const std::vector<Index> nobody_;
  const bool limits_;  ///< Whether limit() has something to do.
  Waiting gradients_, weights_;
};

}  // namespace duplex::tools::simulation
