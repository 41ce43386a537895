// What waits in hosts' queues and in the switch's ports, and what it does to connections: how many
// bytes later frames cannot overtake, what part of a port each has, whom it waits for, and how fast
// acknowledgements let it go.
#pragma once
#include <cstdint>
#include <vector>

#include "net/topology/shard_map.h"
#include "tools/simulation/fluid.h"
#include "tools/simulation/share.h"
#include "tools/simulation/spec.h"

namespace duplex::tools::simulation {

/// Where Spec has no queue, nothing waits and nothing here does anything.
class Queues {
 public:
  using Index = Fluid::Index;
  struct Ends {
    int from = -1, to = -1;
  };

  /// Of flows 0, 1, ... of `fluid`, between the ranks in `ends`. `spec` and `fluid` must outlive
  /// it.
  Queues(const Spec& spec, const net::ShardMap& map, const std::vector<Ends>& ends, Fluid& fluid);

  /// Whether a connection that has bytes to send already takes more.
  bool has_room(Index index) const;
  void hand_over(Index index, double bytes);

  /// Seconds that a frame waits in a port behind what others have there by now. One whose
  /// connection had no pause is among them already.
  double behind(Index index, double now) const;
  /// A frame leaves from now on.
  void begin(Index index, double now);
  /// It is through.
  void sent(Index index, double bytes);
  /// The receiver takes nothing in.
  void hold(Index index);
  /// There is nothing to send.
  void pause(Index index);
  /// Who may wait in the port to a rank, if nobody sends there; else nobody.
  const std::vector<Index>& let_through(int to) const;

  /// Tells connections how fast acknowledgements let them go, where that has changed.
  void limit();

 private:
  struct Connection {
    Ends ends;
    bool sends = false;
    double handed = 0.0;  ///< Bytes, to the kernel.
    double waits = 0.0;   ///< Of them, where acknowledgements wait for them, too.
    Share share;
  };
  /// What a dedicated server's connections of one direction have waiting.
  struct Waiting {
    int connections = 0;
    double bytes = 0.0;
    double seconds = 0.0;  ///< That it takes, as connections of the other direction were told.
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
  std::vector<std::vector<Index>> meeting_;  ///< In the port to a rank, where connections differ.
  const std::vector<Index> nobody_;
  const bool limits_;  ///< Whether limit() has something to do.
  Waiting gradients_, weights_;
};

}  // namespace duplex::tools::simulation
