#include "course/08_schedules/check.h"

int main(int argc, char** argv) {
  using namespace duplex::course;
  return run_exercise(schedules_exercise({exercise::central_best, exercise::central_worst,
                                          exercise::distributed, exercise::peak_of_split}),
                      argc, argv);
}
