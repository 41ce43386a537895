// Convolutions of the stand-in: its engines, and their computation, which the CPU's own device
// does.
#pragma once
#include <cudnn_backend.h>

#include <cstdint>
#include <map>
#include <vector>

#include "tests/stand_in/clock.h"
#include "tests/stand_in/descriptor.h"

namespace duplex::stand_in {

/// An engine that a convolution may be computed with.
struct Engine {
  std::vector<cudnnBackendNumericalNote_t> notes;
  std::int64_t workspace = 0;
  bool has_plan = true;
  bool compiled = false;       ///< It is compiled when it is asked for.
  bool computes = true;        ///< If false, the result stays as it was.
  bool errs = false;           ///< If true, every element of the result is 1.
  std::int64_t slowness = 20;  ///< Its time, in that of the fastest.
  bool proposed = true;        ///< If false, it comes with the rest: CUDNN_HEUR_MODE_FALLBACK.
};

/// Returns the engines in the order of an estimate, the best first. Not all may be used, and not
/// all can be.
const std::vector<Engine>& engines();

/// Returns how long an engine takes for the nodes of a graph.
Time time_of_graph(const std::vector<const Described*>& nodes, const Engine& engine);

/// Computes the nodes of a graph. `memory` is by the tensors' unique ids.
void run_graph(const std::vector<const Described*>& nodes, const Engine& engine,
               const std::map<std::int64_t, void*>& memory);

}  // namespace duplex::stand_in
