// What part of a port a connection has beside others, and how much it has under way: what TCP's
// windows make of them.
#pragma once
#include <cstdint>

#include "tools/simulation/spec.h"

namespace duplex::tools::simulation {

class Share {
 public:
  Share() = default;
  /// Of a connection from a rank with `out` connections to send by, to one with `in` to receive by.
  /// `number` tells connections apart in what is drawn.
  Share(const Spec& spec, int to, std::size_t in, std::size_t out, std::uint64_t number);

  /// Bytes that may be handed over before the first frame has arrived: later frames cannot overtake
  /// these any more.
  double ahead() const { return ahead_; }

  /// Its weight in its port from a frame of `round` on; `alone`: nobody else sends there now.
  double weight(std::uint64_t round, bool alone);
  /// A frame has taken so long.
  void sent_for(double seconds) { sent_for_ += seconds; }

 private:
  double most_ = 0.0;  ///< Bytes in flight; 0: it has no window.
  double ahead_ = 0.0;
  double unfairness_ = 0.0;  ///< Spec's, for this connection.
  bool meets_others_ = false;
  std::uint64_t seed_ = 0, number_ = 0;
  std::uint64_t round_ = ~std::uint64_t{0};  ///< That `drawn_` is of.
  double drawn_ = 1.0;
  double window_ = 0.0;    ///< Bytes; 0: nothing has been sent.
  double sent_for_ = 0.0;  ///< Seconds since `window_` was told.
};

}  // namespace duplex::tools::simulation
