// This is the check of exercise 7.
#pragma once
#include "course/07_shares/shares.h"
#include "course/harness/exercise.h"

namespace duplex::course {

using Deal = decltype(exercise::deal);
using StepSeconds = decltype(exercise::step_seconds);

Exercise shares_exercise(Deal* deal, StepSeconds* seconds);

}  // namespace duplex::course
