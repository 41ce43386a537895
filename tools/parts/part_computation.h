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
  /// `source` gives the micro-batches. `network` has the part's parameters; null: a replay. `looks`
  /// says in which steps it looks for NaN (divergence.h). All arguments must outlive it.
  PartComputation(PartRunner& runner, const PartRunner::Source& source, MapExchange& maps,
                  LossRoutes routes, Network* network,
                  std::function<bool(std::uint64_t step)> looks);

  void run(Exchange& exchange, std::uint64_t step) override;
  /// The loss is that of all ranks on the first one, and elsewhere that of this rank.
  StepOutcome outcome() override { return outcome_; }

 private:
  PartRunner& runner_;
  PartRunner::Source source_;
  MapExchange& maps_;
  LossRoutes routes_;
  Network* network_;
  std::function<bool(std::uint64_t step)> looks_;
  std::int64_t data_ns_ = 0;  ///< Time that `source` has taken in this step.
  StepOutcome outcome_;
};

}  // namespace duplex::tools
