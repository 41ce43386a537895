// This is the check of exercise 4.
#pragma once
#include "course/04_optimisers/optimisers.h"
#include "course/harness/exercise.h"

namespace duplex::course {

using MomentumStep = decltype(exercise::momentum_step);
using AdamStep = decltype(exercise::adam_step);

Exercise optimisers_exercise(MomentumStep* momentum, AdamStep* adam);

}  // namespace duplex::course
