// The least time that a strategy can take, without simulating it.
#pragma once
#include "tools/planning/situation.h"

namespace duplex::tools {

/// Returns seconds an image that no simulation of the strategy goes below: every worker computes
/// its part of a step, a link carries the step's bytes, and the work of a pipeline's stage lies
/// between the forward of its first micro-batch and the backward of its last on the stages before.
/// 0 where no such bound is known: asynchronous and averaging strategies, and stragglers that
/// differ from step to step. `spec`: what situation.spec_of() returns of the strategy.
double image_floor(const Situation& situation, const Strategy& strategy,
                   const simulation::Spec& spec);

}  // namespace duplex::tools
