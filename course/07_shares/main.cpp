#include "course/07_shares/check.h"

int main(int argc, char** argv) {
  using namespace duplex::course;
  return run_exercise(shares_exercise(exercise::deal, exercise::step_seconds), argc, argv);
}
