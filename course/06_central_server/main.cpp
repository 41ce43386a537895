#include "course/06_central_server/check.h"

int main(int argc, char** argv) {
  using namespace duplex::course;
  const std::string program = std::string(argv[0]) + ".duplex";
  return run_exercise(
      central_server_exercise(exercise::collect, exercise::average, exercise::publish, program),
      argc, argv);
}
