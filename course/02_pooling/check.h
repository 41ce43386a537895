// This is the check of exercise 2.
#pragma once
#include "course/02_pooling/pooling.h"
#include "course/harness/exercise.h"

namespace duplex::course {

using MaxPoolBackward = decltype(exercise::max_pool_backward);

/// This is the product's own pooling (core/reference/pool.cpp), with which the check compares.
MaxPoolBackward products_pooling;

Exercise pooling_exercise(MaxPoolBackward* solution);

}  // namespace duplex::course
