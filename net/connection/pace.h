// How fast ranks send to one another in steps that do little but exchange: so fast that links are
// busy, and no faster, so that little waits in the network.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "net/wire/socket.h"

namespace duplex::net {

/// Bytes a second; a rank that is told less is told wrong.
constexpr std::uint64_t least_pace = 1000;

/// Finds the rate at which a rank's link takes what it sends, from step to step, by what waits in
/// the queues on the way. Connections that send as fast as they can fill those up to their windows;
/// then one has a greater part of the link than another, one rank has its last weights later than
/// another, and links stand idle between steps (docs/decisions/flow-control.md). In equal parts of
/// this rate they do not.
///
/// At first it is what the peers acknowledged while connections had something to send, with queues
/// full, so that it was the link that took no more. From then on it is steered by how long the
/// queue is when a step ends, as in TIMELY (Mittal et al. 2015): it goes down while that is longer
/// than it is to be, and up while it is shorter, ever faster while there is none. A queue that
/// stays though the rate went down is somebody else's, and the rate is found anew. Where a
/// connection often had nothing to send, two steps in a row, the next are not paced, nor where
/// steps are too short for a queue to tell.
class Pace {
 public:
  /// At the end of a step, of every connection, in the same order every time. `window`: bytes that
  /// the peers together let this rank have under way. Bytes a second for all connections together;
  /// none: as fast as they can.
  std::optional<double> step(Clock::time_point now, const std::vector<Flow>& flows, double window);

 private:
  struct Look {
    Clock::time_point at;
    std::vector<Flow> flows;
  };

  void forget();
  void look_for(double taken);
  void steer(double filled, double window, double bytes);

  std::optional<Look> before_;
  std::vector<double> taken_;  ///< Bytes a second, in the last steps at whose end queues were full.
  std::optional<double> rate_;  ///< Bytes a second.
  double found_ = 0;            ///< What it was at first.
  double change_ = 0;           ///< Of the rate, the last one.
  bool passed_over_ = false;    ///< The step before told nothing.
};

}  // namespace duplex::net
