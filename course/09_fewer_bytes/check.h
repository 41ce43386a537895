// This is the check of exercise 9.
#pragma once
#include "course/09_fewer_bytes/fewer_bytes.h"
#include "course/harness/exercise.h"

namespace duplex::course {

using SelectLargest = decltype(exercise::select_largest);

Exercise fewer_bytes_exercise(SelectLargest* solution);

}  // namespace duplex::course
