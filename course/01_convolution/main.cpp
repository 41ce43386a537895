#include "course/01_convolution/check.h"

int main(int argc, char** argv) {
  using namespace duplex::course;
  return run_exercise(convolution_exercise(exercise::convolve), argc, argv);
}
