// Says whether a parallel run paid, in one sentence.
#pragma once
#include <string>

namespace duplex::tools {

/// A parallel run beside one machine. Times are seconds, medians of steps.
struct Payoff {
  std::string run, alone;  ///< Their names.
  double speedup = 0.0;    ///< (4.23): t_grad of one machine over seconds a batch of the run.
  double step = 0.0, gradient = 0.0;  ///< A worker's step, and its computing in it.
  /// How many times as long a worker computes for its part of a batch as one machine would.
  double computing = 1.0;
};

/// "Paid: central is 1.43 times as fast as alone." or "Did not pay: central comes to 0.80 times
/// alone, because its workers compute during 39% of a step and exchange in
/// the rest."
std::string text_of(const Payoff& payoff);

}  // namespace duplex::tools
