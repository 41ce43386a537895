#include "course/04_optimisers/check.h"

int main(int argc, char** argv) {
  using namespace duplex::course;
  return run_exercise(optimisers_exercise(exercise::momentum_step, exercise::adam_step), argc,
                      argv);
}
