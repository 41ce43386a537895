// This is the check of exercise 1.
#pragma once
#include "course/01_convolution/convolution.h"
#include "course/harness/exercise.h"

namespace duplex::course {

using Convolve = decltype(exercise::convolve);

/// This is the product's own convolution (core/reference/conv.cpp), with which the check compares.
Convolve products_convolution;

Exercise convolution_exercise(Convolve* solution);

}  // namespace duplex::course
