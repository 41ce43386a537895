// Every measurement reads this clock. It is monotonic and counts nanoseconds.
#pragma once
#include <chrono>
#include <cstdint>

namespace duplex {

inline std::int64_t clock_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

inline double seconds(std::int64_t nanoseconds) {
  return static_cast<double>(nanoseconds) * 1e-9;
}

}  // namespace duplex
