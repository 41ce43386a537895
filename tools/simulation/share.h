// The share of a connection: which part of a port it has beside others, and how much it has under
// way, by TCP's windows.
#pragma once
#include <algorithm>
#include <cstdint>

#include "core/random.h"
#include "tools/simulation/spec.h"

namespace duplex::tools::simulation {

class Share {
 public:
  /// Bytes that a connection has waiting in its host's own queue, if that serves all alike, as the
  /// lab's hosts' do.
  static constexpr double host_bytes = 128 << 10;

  Share() = default;
  /// The share of a connection to a rank that receives by `in` connections, and `crowd` times as
  /// much as it sends. If that is clearly more, connections meet in its port of the switch;
  /// otherwise at their sender's own link, and nothing waits in the switch. `number` tells
  /// connections apart in the draws.
  Share(const Spec& spec, int to, std::size_t in, double crowd, std::uint64_t number);

  /// Bytes that may be handed over before the first frame has arrived; later frames cannot overtake
  /// them any more.
  double ahead() const;

  /// The weight of the next frame in its port.
  double weight();
  bool meets() const { return meets_; }
  /// begins(): it sends from now on, if it did not. pauses(): it has nothing to send.
  void begins(double now) { since_ = sends() ? since_ : now; }
  void pauses() { since_ = -1.0; }
  bool sends() const { return since_ >= 0.0; }
  /// Bytes that it has in the port by now, if its own link fills the port at `rate`.
  double filled(double now, double rate) const {
    return std::min(waiting(), (now - since_) * rate);
  }
  /// Bytes that it has waiting in that port while it meets others there.
  double waiting() const { return meets_ ? window_ : 0.0; }
  /// The most bytes a second while acknowledgements wait for `back` seconds on their way.
  double limit(double back) const;
  /// A frame of so many bytes has passed; `limited`: it might have gone faster with a larger
  /// window.
  void sent(double bytes, bool limited);

 private:
  double drawn(double stddev);

  double own_queue_ = 0.0;   ///< Bytes that wait in its sender, if there are queues.
  bool differs_ = false;     ///< It differs from others beside it.
  bool meets_ = false;       ///< It meets others in a switch's port.
  double most_ = 0.0;        ///< Bytes that it may have in flight there, about.
  double window_ = 0.0;      ///< Bytes that it has in flight there.
  double since_ = -1.0;      ///< When it began to send without a pause.
  double unfairness_ = 0.0;  ///< See Spec.
  RandomStream random_{0, 0};
  double unfair_ = 1.0, drawn_left_ = 0.0;  ///< The last draw, and how many bytes more it is for.
  std::uint64_t draws_ = 0;
};

}  // namespace duplex::tools::simulation
