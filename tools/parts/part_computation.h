// The computation of a rank that has a part of a network that is cut.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "layers/parts/part_runner.h"
#include "tools/training/computation.h"

namespace duplex::tools {

/// The losses of all ranks come together on the first. `routes` are numbers of maps of one element,
/// a message of which crosses in every step.
struct LossRoutes {
  std::vector<std::size_t> coming;     ///< On the first rank.
  std::optional<std::size_t> leaving;  ///< On another one that computes some loss.
};

class PartComputation final : public Computation {
 public:
  /// `source` gives the micro-batches. All arguments must outlive it.
  PartComputation(PartRunner& runner, PartRunner::Source source, MapExchange& maps,
                  LossRoutes routes, bool replays);

  void run(Exchange& exchange, std::uint64_t step) override;
  /// The loss is that of all ranks on the first one, and elsewhere that of this rank.
  StepOutcome outcome() override { return outcome_; }

 private:
  PartRunner& runner_;
  PartRunner::Source source_;
  MapExchange& maps_;
  LossRoutes routes_;
  bool replays_;
  StepOutcome outcome_;
};

}  // namespace duplex::tools
