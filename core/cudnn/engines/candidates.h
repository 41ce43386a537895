// Has cuDNN make the plans among which the one of a graph is chosen. It compiles the engines of
// some, which takes up to a second each: several threads do that for several graphs at once.
#pragma once
#include <cstddef>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <vector>

#include "core/cudnn/engines/choices.h"
#include "core/cudnn/engines/graph.h"
#include "core/gpu/options.h"

namespace duplex::cudnn {

class Plan;

/// Plans that compute a graph in the precision that was asked for, and give the same bits every
/// time. None of them has run.
struct Candidates {
  std::vector<std::shared_ptr<Plan>> plans;  ///< In the order of cuDNN's own estimate.
  bool remembered = false;  ///< There is one plan, that of the engine that was chosen before.
};

/// An engine has to keep to these.
struct EngineLimits {
  Precision precision = Precision::float32;
  std::size_t workspace = 0;  ///< In bytes.
};

/// Returns the candidates for a graph: the engine that was chosen before, if that is given and
/// still there, else all that are worth timing. There are none where cuDNN has no engine.
Candidates candidates_for(const ConvGraph& graph, const Target& target, const EngineLimits& limits,
                          const std::optional<Choice>& chosen_before);

/// Returns what is asked for, for each of some graphs.
using MakeCandidates = std::function<Candidates(std::size_t graph, const Target& target)>;
/// Calls make(i, target) for each i below `count`, on as many threads as there are targets, the
/// calling thread among them, or fewer where the system starts no more; each uses one target, the
/// calling thread the first one. Returns when all are done. Future i holds what call i returned or
/// threw, so that the result does not depend on the number of threads.
std::vector<std::future<Candidates>> made_by_threads(std::size_t count,
                                                     const std::vector<Target>& targets,
                                                     const MakeCandidates& make);

}  // namespace duplex::cudnn
