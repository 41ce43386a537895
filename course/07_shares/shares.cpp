// Exercise 7: docs/course/07-shares.md says what is to be written here.
#include "course/07_shares/shares.h"

#include "course/harness/report.h"

namespace exercise {

void deal(std::int32_t /*tensors*/, const std::int32_t* /*elements*/, std::int32_t /*machines*/,
          std::int32_t* /*owner*/) {
  duplex::course::not_written("deal");
}

double step_seconds(std::int32_t /*machines*/, const double* /*share*/, double /*comm*/,
                    double /*grad*/) {
  duplex::course::not_written("step_seconds");
}

}  // namespace exercise
