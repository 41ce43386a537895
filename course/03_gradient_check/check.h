// This is the check of exercise 3.
#pragma once
#include "course/03_gradient_check/gradient_check.h"
#include "course/harness/exercise.h"

namespace duplex::course {

using FindWrong = decltype(exercise::find_wrong);

Exercise gradient_check_exercise(FindWrong* solution);

}  // namespace duplex::course
