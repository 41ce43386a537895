// Asks cuDNN for the engines of a graph, and keeps those that may be used.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "core/cudnn/engines/choices.h"
#include "core/cudnn/engines/graph.h"
#include "core/gpu/options.h"

namespace duplex::cudnn {

struct Engine {
  static constexpr std::int64_t unknown = -1;
  Descriptor configuration, plan;
  std::size_t workspace;  ///< Bytes that it needs beside the tensors.
  std::int64_t index;     ///< cuDNN's number of the engine among those for such graphs, or unknown.
  Choice place = {};      ///< Among cuDNN's proposals; it says the same index, and no time.
};

/// Returns cuDNN's notes on how the engine of a configuration computes, or nullopt where it does
/// not say.
std::optional<std::vector<cudnnBackendNumericalNote_t>> numerical_notes(
    const Descriptor& configuration);

/// Returns at most `at_most` engines that compute a graph (describe()) in a precision, give the
/// same bits every time, and need at most `workspace_limit` bytes. They come in the order of
/// cuDNN's own estimate: first those that it recommends, then the rest, because in strict float32
/// most of the recommended ones may not be used.
std::vector<Engine> engines_of(const Descriptor& graph, const Target& target, Precision precision,
                               std::size_t workspace_limit, std::size_t at_most);

/// Returns the engine at a place among cuDNN's proposals, or nullopt where another one is there by
/// now, or one that may not be used.
std::optional<Engine> engine_at(const Choice& place, const Descriptor& graph, const Target& target,
                                Precision precision, std::size_t workspace_limit);

}  // namespace duplex::cudnn
