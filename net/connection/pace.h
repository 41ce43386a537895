// The pace at which ranks send to one another in steps that do little but exchange: fast enough to
// keep links busy, and no faster, so that little waits in the network.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "net/wire/socket.h"

namespace duplex::net {

/// The least pace, in bytes a second; a `pace` frame with less is an error, unless it has 0.
constexpr std::uint64_t least_pace = 1000;

/// Finds the rate at which a rank's link takes what the rank sends, from step to step, by the
/// length of the queues on the way. Connections that send as fast as they can fill the queues up to
/// their windows. Then one connection has a greater part of the link than another, one rank has its
/// last weights later than another, and links stand idle between steps
/// (docs/decisions/flow-control.md). That does not happen when every connection sends an equal part
/// of this rate.
///
/// At first the rate is what the peers acknowledged while connections had something to send and
/// queues were full, since then it was the link that took no more. From then on it is steered by
/// the length of the queue when a step ends, as in TIMELY (Mittal et al. 2015): it goes down while
/// the queue is longer than it should be, and up while it is shorter, ever faster while there is
/// none. If a queue stays although the rate went down, it is of somebody else's traffic, and the
/// rate is found anew. After two steps in a row in which a connection often had nothing to send, or
/// which were too short for a queue to tell anything, the next steps are not paced.
class Pace {
 public:
  /// Call it at the end of a step, with the flows of all connections in the same order every time.
  /// `window`: bytes that the peers together let this rank have under way. Returns bytes a second
  /// for all connections together; none: they send as fast as they can.
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
  std::vector<double> taken_;   ///< Bytes a second in the last steps that ended with full queues.
  std::optional<double> rate_;  ///< Bytes a second.
  double found_ = 0;            ///< The rate when it was found.
  double change_ = 0;           ///< The last change, as a part of the rate.
  bool passed_over_ = false;    ///< The step before was passed over.
};

}  // namespace duplex::net
