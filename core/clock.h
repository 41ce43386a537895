// The one clock of the program, which is monotonic: measurements count its nanoseconds, and waits
// have deadlines on it.
#pragma once
#include <chrono>
#include <cstdint>

namespace duplex {

using Clock = std::chrono::steady_clock;
using Deadline = Clock::time_point;

inline std::int64_t clock_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now().time_since_epoch())
      .count();
}

inline double seconds(std::int64_t nanoseconds) {
  return static_cast<double>(nanoseconds) * 1e-9;
}

}  // namespace duplex
