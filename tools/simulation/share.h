// What part of a port a connection has beside others, and how much it has under way: what TCP's
// windows make of them.
#pragma once
#include <algorithm>
#include <cstdint>

#include "core/random.h"
#include "tools/simulation/spec.h"

namespace duplex::tools::simulation {

class Share {
 public:
  /// What a connection has waiting in its host's own queue, where that serves all alike: as the
  /// lab's hosts have it.
  static constexpr double host_bytes = 128 << 10;

  Share() = default;
  /// Of a connection to a rank with `in` connections to receive by and `crowd` times as much to
  /// receive as to send: where that is clearly more, they meet in its port of the switch; else at
  /// their sender's own link, and nothing waits in the switch. `number` tells connections apart in
  /// what is drawn.
  Share(const Spec& spec, int to, std::size_t in, double crowd, std::uint64_t number);

  /// Bytes that may be handed over before the first frame has arrived: later frames cannot overtake
  /// these any more.
  double ahead() const;

  /// Its weight in its port, of the next frame.
  double weight();
  bool meets() const { return meets_; }
  /// It sends from now on, if it did not, or has nothing to send.
  void begins(double now) { since_ = sends() ? since_ : now; }
  void pauses() { since_ = -1.0; }
  bool sends() const { return since_ >= 0.0; }
  /// Bytes that it has in the port by now, which its own link fills at a rate.
  double filled(double now, double rate) const {
    return std::min(waiting(), (now - since_) * rate);
  }
  /// What it has waiting in that port while it meets others there.
  double waiting() const { return meets_ ? window_ : 0.0; }
  /// Bytes a second at most, while acknowledgements wait so long on their way `back`.
  double limit(double back) const;
  /// A frame of so many bytes is through; `limited`: it might have gone faster with a larger
  /// window.
  void sent(double bytes, bool limited);

 private:
  double drawn(double stddev);

  double own_queue_ = 0.0;   ///< Bytes that it has waiting in its sender, where there are queues.
  bool differs_ = false;     ///< From others beside it.
  bool meets_ = false;       ///< Others, in a switch's port.
  double most_ = 0.0;        ///< Bytes that it may have in flight there, about,
  double window_ = 0.0;      ///< and has.
  double since_ = -1.0;      ///< When it began to send without a pause.
  double unfairness_ = 0.0;  ///< Spec's.
  RandomStream random_{0, 0};
  double unfair_ = 1.0, drawn_left_ = 0.0;  ///< What was drawn, and for how many bytes more.
  std::uint64_t draws_ = 0;
};

}  // namespace duplex::tools::simulation
