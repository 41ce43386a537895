// Exercise 4: docs/course/04-optimisers.md. The student writes optimisers.cpp.
#pragma once
#include <cstddef>
#include <cstdint>

namespace exercise {

/// Updates weights by SGD with momentum: v = momentum v + g; w -= rate v. Arrays have `count`
/// elements; velocity is 0 before the first step.
void momentum_step(float rate, float momentum, std::size_t count, float* weights,
                   const float* gradient, float* velocity);

/// These are the rates of Adam, as Algorithm 3.2 has them.
struct AdamSettings {
  float rate = 0.001F, beta1 = 0.9F, beta2 = 0.999F, epsilon = 1e-8F;
};

/// Updates weights by Adam (Algorithm 3.2, with epsilon outside of the root). `step` is 1 in the
/// first step. Arrays have `count` elements; m and v are 0 before the first step.
void adam_step(const AdamSettings& settings, std::uint64_t step, std::size_t count, float* weights,
               const float* gradient, float* m, float* v);

}  // namespace exercise
