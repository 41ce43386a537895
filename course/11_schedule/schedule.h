// Exercise 11: docs/course/11-schedule.md. The student writes schedule.cpp.
#pragma once
#include <cstdint>

namespace exercise {

/// A tensor of one worker that waits for the server's link: its gradient on the way in, or its new
/// weights on the way out.
struct Transfer {
  std::int32_t worker;
  std::int32_t tensor;  ///< 0 is the first layer's, which the forward pass needs first.
  double seconds;       ///< The link is busy for so long with it.
};

/// Chooses the gradient that goes next over the server's link, which carries one at a time. Returns
/// its number in `waiting`.
///   waiting [count]: in the order in which they were ready, count >= 1
///   last: the worker whose gradient came last; -1: none has come yet
std::int32_t next_gradient(const Transfer* waiting, std::int32_t count, std::int32_t last);

/// Chooses the weights that leave the server next, in the same way.
std::int32_t next_weights(const Transfer* waiting, std::int32_t count, std::int32_t last);

}  // namespace exercise
