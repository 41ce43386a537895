// Exercise 3: docs/course/03-gradient-check.md. The student writes gradient_check.cpp.
#pragma once
#include <cstddef>
#include <functional>

namespace exercise {

/// The loss of a small network for these weights, computed in float32.
using Loss = std::function<float(const float* weights)>;

/// Compares every element of `gradient` with a numeric derivative of the loss. At most one element
/// is wrong: it is off by a tenth of its true value or more, and the true value is at least a
/// hundredth of the largest one. Returns its index, or -1 where none is.
/// weights [count] may be changed meanwhile, and are in the end to the bit what they were.
/// gradient [count] is what somebody claims.
std::ptrdiff_t find_wrong(const Loss& loss, std::size_t count, float* weights,
                          const float* gradient);

}  // namespace exercise
