#include "course/03_gradient_check/check.h"

int main(int argc, char** argv) {
  using namespace duplex::course;
  return run_exercise(gradient_check_exercise(exercise::find_wrong), argc, argv);
}
