// Figures of a simulated run, by the rules of real ones.
#pragma once
#include <vector>

#include "tools/run_directory/run_summary.h"
#include "tools/simulation/spec.h"

namespace duplex::tools {

/// Batches that a run does: those asked for, and some more if that makes every worker's number
/// equal.
double batches_of(const simulation::Spec& spec);

/// The speedup (4.23) by the time until the last gradient is applied, as (4.4) to (4.21) have it,
/// in a run that lost no rank. `grad`: t_grad of one machine, in seconds.
double speedup_of(const simulation::Spec& spec, const simulation::Outcome& outcome, double grad);

/// The result of one worker: medians over the steps after warm-up.
TrainingResult result_of(const std::vector<simulation::StepTimes>& steps);

}  // namespace duplex::tools
