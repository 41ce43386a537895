#include "course/10_pull_the_plug/check.h"

int main(int argc, char** argv) {
  using namespace duplex::course;
  return run_exercise(pull_the_plug_exercise(exercise::steps_again, exercise::async_seconds,
                                             exercise::lost_part, exercise::best_interval),
                      argc, argv);
}
