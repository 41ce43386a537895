// Runs the engines of a graph on tensors of its own, to see how long they take and whether they
// compute the right thing.
#pragma once
#include <memory>
#include <optional>
#include <vector>

#include "core/cudnn/engines/plan.h"
#include "core/cudnn/engines/sample.h"

namespace duplex::cudnn {

class Trial {
 public:
  Trial(const Context& context, const ConvGraph& graph);

  /// Returns the milliseconds of the fastest of some runs, or infinity where the engine fails.
  /// `best_so_far` is the time of the best engine before it.
  float time(const std::shared_ptr<const Plan>& plan, float best_so_far);
  /// Makes room for an engine that is not timed.
  void prepare(const Plan& plan) { context_.grow(workspace_, plan.workspace()); }
  /// Returns the error of an engine that has been timed or prepared, as far as a sample of its
  /// result tells: its norm over that of the exact result, or infinity where it is not finite.
  double error(const std::shared_ptr<const Plan>& plan);

 private:
  void* allocate(const View& view);

  const Context& context_;
  ConvGraph graph_;
  std::vector<Buffer> buffers_;
  Buffer workspace_;
  ConvMemory memory_;
  std::optional<Sample> sample_;  ///< Made when it is first needed.
};

}  // namespace duplex::cudnn
