// The bytes that a step of a strategy moves, without simulating it.
#pragma once
#include <vector>

#include "tools/planning/situation.h"

namespace duplex::tools {

/// Bytes that a rank sends and receives in a step. With averaging, on the average over a round.
struct RankBytes {
  double out = 0.0, in = 0.0;
};
/// Returns those of every rank.
std::vector<RankBytes> rank_bytes(const Situation& situation, const Strategy& strategy);

/// Those of a worker, the most of any, and of a central server (0: there is none).
struct StepBytes {
  double worker_out = 0.0, worker_in = 0.0, server_out = 0.0, server_in = 0.0;
};
StepBytes step_bytes(const Situation& situation, const Strategy& strategy);
/// `spec`: what Situation::spec_of() returns of the strategy, for any number of steps.
StepBytes step_bytes(const Strategy& strategy, const simulation::Spec& spec);

}  // namespace duplex::tools
