// This is the check of exercise 7.
#pragma once
#include "course/07_shares/shares.h"
#include "course/harness/exercise.h"

namespace duplex::course {

using Deal = decltype(exercise::deal);
using StepSeconds = decltype(exercise::step_seconds);

/// This is the product's own Algorithm 3.7 (net/topology/shard_map.cpp), with which the check
/// compares.
Deal products_deal;

Exercise shares_exercise(Deal* deal, StepSeconds* seconds);

}  // namespace duplex::course
