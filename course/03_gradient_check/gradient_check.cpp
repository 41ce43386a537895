// Exercise 3: docs/course/03-gradient-check.md says what is to be written here.
#include "course/03_gradient_check/gradient_check.h"

#include "course/harness/report.h"

namespace exercise {

std::ptrdiff_t find_wrong(const Loss& /*loss*/, std::size_t /*count*/, float* /*weights*/,
                          const float* /*gradient*/) {
  duplex::course::not_written("find_wrong");
}

}  // namespace exercise
