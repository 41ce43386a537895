// A strategy is one way to train on some of the machines that there are.
#pragma once
#include <string>
#include <vector>

#include "tools/plan/parallel.h"

namespace duplex::tools {

struct Strategy {
  ParallelSpec parallel;
  std::vector<int> machines;  ///< By rank, numbered as the user has them; a central server's first.

  int workers() const { return static_cast<int>(machines.size()) - (parallel.central() ? 1 : 0); }
  /// The way alone: "join-distributed", "none-central-semaphore", "average8-distributed",
  /// "split-distributed-tensors-strict", "join-distributed-shared", "join-distributed-bf16",
  /// "pipeline-4:2:1:1-m32": stages with so many machines, and 32 micro-batches; "hybrid-m2".
  std::string way() const;
  /// With the number of workers: "join-distributed@4".
  std::string name() const;
  /// The training on one machine that has the same result: "batch 256", "batch 32 (parts)"; empty:
  /// there is none. `batch`: images of one machine's batch.
  std::string result(std::int64_t batch) const;
  /// Whether there is one.
  bool exact() const {
    return parallel.sync != net::Sync::none && parallel.average <= 1 && parallel.wire.exact();
  }
};

/// Whether a name that the user gave, as way() or name() has it, means this strategy.
bool is_named(const Strategy& strategy, const std::string& name);

}  // namespace duplex::tools
