// This is the check of exercise 1.
#pragma once
#include "course/01_convolution/convolution.h"
#include "course/harness/exercise.h"

namespace duplex::course {

using Convolve = decltype(exercise::convolve);

Exercise convolution_exercise(Convolve* solution);

}  // namespace duplex::course
