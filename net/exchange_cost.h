// Measures what an exchange takes of a worker's processors, beside what its bytes take: every frame
// wakes threads up.
#pragma once
#include <chrono>
#include <cstddef>
#include <vector>

#include "net/rendezvous/mesh.h"

namespace duplex::net {

struct ExchangeCost {
  double step = 0.0;       ///< Processor seconds of a step, of this process, without its computing.
  std::size_t frames = 0;  ///< Frames that it sent and received in it.
  std::size_t bytes = 0;   ///< Bytes of gradients that it sent, and of weights that it received.
};

/// Trains nothing for about so many seconds: a worker sleeps where others compute, pushes gradients
/// and awaits weights. Both ranks of a mesh with a central server call it, which uses the mesh up;
/// the server has no cost. `counts`: elements by parameter. Throws Error as ParameterExchange does.
ExchangeCost measure_exchange(Mesh mesh, const std::vector<std::size_t>& counts, double seconds,
                              std::chrono::milliseconds timeout);

}  // namespace duplex::net
