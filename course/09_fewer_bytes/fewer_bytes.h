// Exercise 9: docs/course/09-fewer-bytes.md. The student writes fewer_bytes.cpp.
#pragma once
#include <cstdint>

namespace exercise {

/// Chooses what a worker sends of a gradient: the `keep` elements of the largest magnitude, 0 <
/// keep <= count. Where there is a residual, the element to be sent is gradient[i] + residual[i],
/// and residual is overwritten with what was not sent: 0 for those that are, that sum for the
/// others.
///   gradient [count]
///   residual [count], or null: then what is not sent is lost
///   index    [keep]: overwritten with the numbers of the elements, ascending
///   value    [keep]: overwritten with what is sent of each
void select_largest(std::int32_t count, const float* gradient, float* residual, std::int32_t keep,
                    std::int32_t* index, float* value);

}  // namespace exercise
