#include "course/05_transfer/check.h"

int main(int argc, char** argv) {
  using namespace duplex::course;
  return run_exercise(transfer_exercise(exercise::payload_rate, exercise::transfer_seconds), argc,
                      argv);
}
