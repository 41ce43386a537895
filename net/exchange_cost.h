// Measures what an exchange takes of a worker's processors, beside what its bytes take: every frame
// wakes threads up.
#pragma once
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "net/rendezvous/mesh.h"

namespace duplex::net {

/// A worker's, by step.
struct ExchangeCost {
  double step = 0.0;         ///< Processor seconds of this process, without its computing.
  std::size_t frames = 0;    ///< Frames that it sent and received.
  std::size_t sent = 0;      ///< Bytes of gradients and weights that it sent.
  std::size_t received = 0;  ///< Bytes of them that it received.
  std::size_t applied = 0;   ///< Bytes of gradients that it added up or updated weights by.

  /// Processor seconds of a frame, beside what its bytes and the owner's work take: `send` and
  /// `receive` a byte, `rate` bytes of gradients a second (owner_rate.h). 0 where it had no frames,
  /// or they took no more than that.
  double frame(double send, double receive, double rate) const;
};

/// How long an exchange is measured: `steps`, and where only one worker takes part, which decides,
/// as many more as `seconds` allow.
struct ExchangeLength {
  std::uint64_t steps = 3;
  double seconds = 0.0;
};

/// Trains nothing: a worker sleeps where others compute, pushes gradients and awaits weights. All
/// ranks of the mesh call it with the same arguments, which uses the mesh up; a rank that only
/// serves has no cost. `counts`: elements by parameter. Throws Error as ParameterExchange does.
ExchangeCost measure_exchange(Mesh mesh, const std::vector<std::size_t>& counts,
                              const ExchangeLength& length, std::chrono::milliseconds timeout);

}  // namespace duplex::net
