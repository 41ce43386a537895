// What cuDNN proposes for a graph, without what may not be used.
#pragma once
#include <cstddef>
#include <vector>

#include "core/cudnn/graph.h"
#include "core/gpu_options.h"

namespace duplex::cudnn {

struct Engine {
  Descriptor configuration, plan;
  std::size_t workspace;  ///< Bytes that it needs beside the tensors.
};

/// Engines that compute a graph (describe()) in a precision, giving the same bits every time, with
/// no more than so much workspace: at most so many, in the order of cuDNN's own estimate. First
/// those that it recommends, then the rest: in strict float32 most of the former may not be used.
std::vector<Engine> engines_of(const Descriptor& graph, const Target& target, Precision precision,
                               std::size_t workspace_limit, std::size_t at_most);

}  // namespace duplex::cudnn
