// Data for the tests of stores: gradients, weights and settings that are always the same.
#pragma once
#include <cmath>
#include <cstring>
#include <vector>

#include "core/random.h"
#include "net/store/store.h"

namespace duplex::net {

constexpr std::size_t count = 1000;  ///< Elements of the one parameter.

inline std::vector<float> gradient_of(int worker, std::uint64_t step) {
  std::vector<float> gradient(count);
  RandomStream(7, static_cast<std::uint64_t>(worker))
      .fill_uniform(gradient.data(), count, step * count);
  // Magnitudes far apart, so that another order of summing gives other bits.
  for (std::size_t i = 0; i < count; ++i)
    gradient[i] = (gradient[i] - 0.5F) * std::pow(10.0F, static_cast<float>((i + 3 * worker) % 7));
  return gradient;
}

inline std::vector<float> initial() {
  std::vector<float> weights(count);
  RandomStream(8, 0).fill_uniform(weights.data(), count);
  return weights;
}

inline StoreSpec spec_of(int workers, const OptimiserSpec& optimiser, std::size_t early_bytes,
                         int readers = 0) {
  StoreSpec spec;
  spec.readers = readers;
  spec.workers = workers;
  spec.optimiser = optimiser;
  spec.rate.base = 0.01;
  spec.early_bytes = early_bytes;
  return spec;
}

inline OptimiserSpec momentum() {
  OptimiserSpec spec;
  spec.momentum = 0.9F;
  return spec;
}

inline bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

}  // namespace duplex::net
