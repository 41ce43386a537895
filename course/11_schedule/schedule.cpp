// Exercise 11: docs/course/11-schedule.md says what is to be written here.
#include "course/11_schedule/schedule.h"

#include "course/harness/report.h"

namespace exercise {

std::int32_t next_gradient(const Transfer* /*waiting*/, std::int32_t /*count*/,
                           std::int32_t /*last*/) {
  duplex::course::not_written("next_gradient");
}

std::int32_t next_weights(const Transfer* /*waiting*/, std::int32_t /*count*/,
                          std::int32_t /*last*/) {
  duplex::course::not_written("next_weights");
}

}  // namespace exercise
