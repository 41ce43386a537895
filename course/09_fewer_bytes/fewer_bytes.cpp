// Exercise 9: docs/course/09-fewer-bytes.md says what is to be written here.
#include "course/09_fewer_bytes/fewer_bytes.h"

#include "course/harness/report.h"

namespace exercise {

void select_largest(std::int32_t /*count*/, const float* /*gradient*/, float* /*residual*/,
                    std::int32_t /*keep*/, std::int32_t* /*index*/, float* /*value*/) {
  duplex::course::not_written("select_largest");
}

}  // namespace exercise
