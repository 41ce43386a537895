// Random numbers of some distributions, drawn by index.
#pragma once
#include <cmath>

#include "core/random.h"

namespace duplex::tools::simulation {

/// Uniform in (0, 1).
inline double uniform(const RandomStream& random, std::uint64_t index) {
  return (static_cast<double>(random.bits(index)) + 0.5) * 0x1p-32;
}

/// Normal, with mean 0 and stddev 1 (Box and Muller).
inline double normal(const RandomStream& random, std::uint64_t index) {
  constexpr double tau = 6.28318530717958647693;
  return std::sqrt(-2.0 * std::log(uniform(random, 2 * index))) *
         std::cos(tau * uniform(random, 2 * index + 1));
}

}  // namespace duplex::tools::simulation
