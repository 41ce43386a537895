// The processor time that this process has taken.
#pragma once
#include <time.h>

namespace duplex {

/// Returns the processor seconds of this process so far, those of all threads together.
inline double processor_seconds() {
  timespec time{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

}  // namespace duplex
