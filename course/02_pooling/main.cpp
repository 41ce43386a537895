#include "course/02_pooling/check.h"

int main(int argc, char** argv) {
  using namespace duplex::course;
  return run_exercise(pooling_exercise(exercise::max_pool_backward), argc, argv);
}
