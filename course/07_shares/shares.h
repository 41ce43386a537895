// Exercise 7: docs/course/07-shares.md. The student writes shares.cpp.
#pragma once
#include <cstdint>

namespace exercise {

/// Deals tensors to machines by Algorithm 3.7: each in order goes to the machine that holds the
/// fewest elements so far, among several to the one with the lowest number.
///   elements [tensors]: how many each has
///   owner    [tensors]: overwritten with the machine of each, from 0
void deal(std::int32_t tensors, const std::int32_t* elements, std::int32_t machines,
          std::int32_t* owner);

/// Returns the seconds of one synchronous iteration with a distributed server, without overlap:
/// machine k owns the part share[k] of all weights (they sum up to 1), all weights take `comm`
/// seconds over one link in one direction, and a gradient takes `grad` seconds.
double step_seconds(std::int32_t machines, const double* share, double comm, double grad);

}  // namespace exercise
