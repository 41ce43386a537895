// The tracing of one rank (dist --trace): what it records and sends to the coordinator, and what
// the coordinator makes of it.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "layers/network.h"
#include "net/exchange/exchange.h"
#include "tools/run_directory/run_directory.h"
#include "tools/tracing/trace.h"

namespace duplex::tools {

class RankTracing {
 public:
  /// Records the last `steps` steps; 0: nothing is recorded, reported or written. `average`: the
  /// steps of an averaging, which counts as a step then; 0: weights are not averaged.
  RankTracing(std::uint64_t steps, std::uint64_t average)
      : steps_(steps), average_(average), computed_(steps) {}

  /// An observer for Network or Replay; empty if nothing is recorded.
  LayerObserver observer();
  /// Layers observed from now on belong to this step.
  void begin_step(std::uint64_t step) { step_ = average_ > 0 ? step / average_ : step; }

  /// The report for ParameterExchange::finish().
  net::ParameterExchange::Report report(net::ParameterExchange& wire) const;
  /// Takes what finish() returned. On the coordinator it writes trace.json and returns lines for
  /// the user; elsewhere it returns "".
  std::string write(const std::vector<std::string>& reports, const RunDirectory& directory,
                    const Model& model, TraceNames names) const;

 private:
  const std::uint64_t steps_, average_;
  std::uint64_t step_ = 0;
  net::TraceWindow computed_;
};

}  // namespace duplex::tools
