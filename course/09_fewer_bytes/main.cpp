#include "course/09_fewer_bytes/check.h"

int main(int argc, char** argv) {
  using namespace duplex::course;
  return run_exercise(fewer_bytes_exercise(exercise::select_largest), argc, argv);
}
