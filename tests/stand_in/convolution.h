// Convolutions of the stand-in: its engines, and the computing, which the CPU's own device does.
#pragma once
#include <cudnn_backend.h>

#include <cstdint>
#include <map>
#include <vector>

#include "tests/stand_in/descriptor.h"

namespace duplex::stand_in {

/// What a convolution may be computed with.
struct Engine {
  std::vector<cudnnBackendNumericalNote_t> notes;
  std::int64_t workspace = 0;
  bool has_plan = true;
  bool compiled = false;  ///< When it is asked for.
  bool computes = true;   ///< Else the result stays as it was.
  bool proposed = true;   ///< Else it is what the rest is: CUDNN_HEUR_MODE_FALLBACK.
};

/// Best first, by what is said of them; not all may be used, or can be.
const std::vector<Engine>& engines();

/// Of the nodes of a graph; `memory` by the tensors' numbers.
void run_graph(const std::vector<const Described*>& nodes, const Engine& engine,
               const std::map<std::int64_t, void*>& memory);

}  // namespace duplex::stand_in
