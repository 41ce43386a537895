#include "course/11_schedule/check.h"

int main(int argc, char** argv) {
  using namespace duplex::course;
  return run_exercise(schedule_exercise(exercise::next_gradient, exercise::next_weights), argc,
                      argv);
}
