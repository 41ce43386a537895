// Values to test with. They are drawn by a seed, the same in every run.
#pragma once
#include <cstdint>
#include <vector>

#include "core/shape.h"

namespace duplex::test {

/// Returns values that are uniform in [low, high).
std::vector<float> random_values(const Shape& shape, std::uint64_t seed, float low = -1.0F,
                                 float high = 1.0F);

/// Returns values in random order, any two of them at least `gap` apart, and each at least gap / 2
/// away from 0, so that no maximum is in doubt and no ReLU on its kink.
std::vector<float> separated_values(const Shape& shape, std::uint64_t seed, float gap);

/// Returns eighths in [-1, 1]. Sums and products of a few of them are exact in float32, in any
/// order, so that results have the same bits on every backend, ties included.
std::vector<float> exact_values(const Shape& shape, std::uint64_t seed);

/// Returns labels in [0, classes).
std::vector<std::int32_t> random_labels(std::int64_t count, std::int64_t classes,
                                        std::uint64_t seed);

}  // namespace duplex::test
