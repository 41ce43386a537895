// The clock of the stand-in's GPU. It goes on by what work would take a GPU, not by what it takes
// the CPU here: what is timed has the same times in every run, however busy the machine is. The
// numbers below are near those of a GPU; no test should count on them, but on their order.
#pragma once
#include <cstdint>

namespace duplex::stand_in {

/// Nanoseconds of a GPU. Each stream has such a time. A thread of the host has that of the latest
/// work which it has waited for; what it asks for begins no sooner.
using Time = std::int64_t;

/// A kernel takes this time and that of its operations.
constexpr Time launch = 2000;

/// Returns how long a kernel takes.
constexpr Time time_of_kernel(std::int64_t operations) {
  constexpr std::int64_t at_once = 1000;  // In a nanosecond.
  return launch + operations / at_once;
}

/// Returns how long a copy takes, or the filling of memory.
constexpr Time time_of_copy(std::int64_t bytes) {
  constexpr std::int64_t at_once = 20;
  return launch + bytes / at_once;
}

}  // namespace duplex::stand_in
