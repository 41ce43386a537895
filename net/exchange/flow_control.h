// How much a rank's peers may have under way to it, and how fast ranks send to one another: what
// the exchange measures, decides and tells.
#pragma once
#include <cstdint>

#include "net/connection/pace.h"
#include "net/connection/receive_window.h"
#include "net/exchange/peers.h"
#include "net/topology/topology.h"

namespace duplex::net {

/// All ranks that train tell each other the window that they have found, and take the least. The
/// coordinator finds the pace for all of them.
class FlowControl {
 public:
  /// `paced`: whether ranks keep a pace, which is where all connections carry as much, each way, at
  /// any time of a step. `peers` must outlive it.
  FlowControl(const Topology& topology, int rank, bool semaphore, bool paced, Peers& peers);

  /// Before the connection starts.
  void attach(Connection& connection);
  /// Tells the peers a window that was less than usual from the start.
  void start();
  /// At the end of each step, by the training thread.
  void step_ended();
  /// A peer's own window. Throws ProtocolError if it cannot be.
  void hear_window(int peer, std::uint64_t bytes);
  /// The coordinator's pace, in bytes a second; 0: as fast as they can. Throws ProtocolError if it
  /// cannot be.
  void hear_pace(int peer, std::uint64_t pace);

 private:
  void tell_window();
  void keep_pace(std::uint64_t pace);

  Peers& peers_;
  const bool coordinates_, trains_, paced_;
  const int coordinator_;
  ReceiveWindow window_;
  Pace pace_;                    ///< The coordinator's training thread's,
  std::uint64_t told_pace_ = 0;  ///< and what it has told the others.
};

}  // namespace duplex::net
