// This is the check of exercise 10.
#pragma once
#include "course/10_pull_the_plug/pull_the_plug.h"
#include "course/harness/exercise.h"

namespace duplex::course {

using StepsAgain = decltype(exercise::steps_again);
using AsyncSeconds = decltype(exercise::async_seconds);
using LostPart = decltype(exercise::lost_part);
using BestInterval = decltype(exercise::best_interval);

Exercise pull_the_plug_exercise(StepsAgain* again, AsyncSeconds* seconds, LostPart* lost,
                                BestInterval* best);

}  // namespace duplex::course
