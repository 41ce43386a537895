// The processor time that this process, or a thread, has taken.
#pragma once
#include <time.h>

namespace duplex {

inline double seconds_of_clock(clockid_t clock) {
  timespec time{};
  ::clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

/// Returns the processor seconds of this process so far, those of all threads together.
inline double processor_seconds() {
  return seconds_of_clock(CLOCK_PROCESS_CPUTIME_ID);
}

/// Returns those of the calling thread.
inline double thread_processor_seconds() {
  return seconds_of_clock(CLOCK_THREAD_CPUTIME_ID);
}

}  // namespace duplex
