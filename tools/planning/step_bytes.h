// The bytes that a step of a strategy moves, without simulating it.
#pragma once
#include "tools/planning/situation.h"

namespace duplex::tools {

/// Bytes that a rank sends and receives in a step: a worker's, the most of any, and a central
/// server's (0: there is none). With averaging, on the average over a round.
struct StepBytes {
  double worker_out = 0.0, worker_in = 0.0, server_out = 0.0, server_in = 0.0;
};
StepBytes step_bytes(const Situation& situation, const Strategy& strategy);
/// `spec`: what Situation::spec_of() returns of the strategy, for any number of steps.
StepBytes step_bytes(const Strategy& strategy, const simulation::Spec& spec);

}  // namespace duplex::tools
