// Flow control: the exchange measures, decides and tells how much a rank's peers may have under way
// to it, and how fast ranks send to one another.
#pragma once
#include <cstdint>

#include "net/connection/pace.h"
#include "net/connection/peers.h"
#include "net/connection/receive_window.h"
#include "net/topology/topology.h"

namespace duplex::net {

/// All ranks that train tell each other the window that they have found, and take the least. The
/// coordinator finds the pace for all of them.
class FlowControl {
 public:
  /// `paced`: whether ranks keep a pace, which they do where all connections carry as much, in each
  /// direction, at any time of a step. `peers` must outlive it.
  FlowControl(const Topology& topology, int rank, bool semaphore, bool paced, Peers& peers);

  /// Call it before the connection starts.
  void attach(Connection& connection);
  /// Tells the peers this rank's window, if it was less than usual from the start.
  void start();
  /// The training thread calls it at the end of each step.
  void step_ended();
  /// Takes a peer's window. Throws ProtocolError if it cannot be.
  void hear_window(int peer, std::uint64_t bytes);
  /// Takes the coordinator's pace in bytes a second; 0: as fast as ranks can. Throws ProtocolError
  /// if it cannot be.
  void hear_pace(int peer, std::uint64_t pace);

 private:
  void tell_window();
  void keep_pace(std::uint64_t pace);

  Peers& peers_;
  const bool coordinates_, trains_, paced_;
  const int coordinator_;
  ReceiveWindow window_;
  Pace pace_;                    ///< Used by the coordinator's training thread.
  std::uint64_t told_pace_ = 0;  ///< The pace that the coordinator told last.
};

}  // namespace duplex::net
