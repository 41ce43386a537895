// This is the check of exercise 8.
#pragma once
#include "course/08_schedules/schedules.h"
#include "course/harness/exercise.h"

namespace duplex::course {

/// The functions that the student writes.
struct Schedules {
  decltype(exercise::central_best)* central_best;
  decltype(exercise::central_worst)* central_worst;
  decltype(exercise::distributed)* distributed;
  decltype(exercise::peak_of_split)* peak_of_split;
};

Exercise schedules_exercise(const Schedules& solution);

}  // namespace duplex::course
