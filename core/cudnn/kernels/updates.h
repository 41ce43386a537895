// The bodies of the kernels of the optimisers and of the losses: what they do with one element. The
// optimisers do the operations of core/optimiser.cpp in the same order, so that they give the same
// bits where the compiler does not contract them (into fused multiply-adds).
#pragma once
#include <cmath>
#include <cstdint>

#include "core/cudnn/kernels/vector.h"

namespace duplex::cudnn {

/// NaN stays NaN.
DUPLEX_PORTABLE inline float clipped(float value, float bound) {
  return value < -bound ? -bound : value > bound ? bound : value;
}

struct Sgd {
  float *weights, *velocity;  ///< velocity is null where there is no momentum.
  const float* gradient;
  float rate, momentum, decay;
  bool nesterov;
  BFloat16* rounded = nullptr;           ///< Takes the new weights, too, where it is not null.
  float scale = 1.0F, bound = INFINITY;  ///< See OptimiserStep and OptimiserSpec.

  static constexpr int group = group_of<float>;
  bool grouped() const { return aligned<group>(weights, velocity, gradient, rounded); }
  template <int N = 1>
  DUPLEX_PORTABLE void operator()(std::uint32_t i) const {
    Floats<N> w = load<N>(weights + i), step = load<N>(gradient + i), speed{};
    if (velocity != nullptr) speed = load<N>(velocity + i);
    for (int k = 0; k < N; ++k) {
      const float g = clipped(step[k] * scale, bound) + decay * w[k];
      speed[k] = momentum * speed[k] + g;
      step[k] = velocity == nullptr ? g : nesterov ? g + momentum * speed[k] : speed[k];
      w[k] -= rate * step[k];
    }
    if (velocity != nullptr) store(velocity + i, speed);
    store(weights + i, w);
    if (rounded != nullptr) store(rounded + i, w);
  }
};

struct Adam {
  float *weights, *m, *v;
  const float* gradient;
  float m_scale, v_scale;  ///< rate / (1 - beta1^t) and 1 / (1 - beta2^t).
  float beta1, beta2, epsilon, decay;
  BFloat16* rounded = nullptr;  ///< As for Sgd.
  float scale = 1.0F, bound = INFINITY;

  static constexpr int group = group_of<float>;
  bool grouped() const { return aligned<group>(weights, m, v, gradient, rounded); }
  template <int N = 1>
  DUPLEX_PORTABLE void operator()(std::uint32_t i) const {
    Floats<N> w = load<N>(weights + i), mean = load<N>(m + i), square = load<N>(v + i);
    const Floats<N> given = load<N>(gradient + i);
    for (int k = 0; k < N; ++k) {
      const float g = clipped(given[k] * scale, bound) + decay * w[k];
      mean[k] = beta1 * mean[k] + (1.0F - beta1) * g;
      square[k] = beta2 * square[k] + (1.0F - beta2) * g * g;
      w[k] -= m_scale * mean[k] / (sqrtf(square[k] * v_scale) + epsilon);
    }
    store(m + i, mean);
    store(v + i, square);
    store(weights + i, w);
    if (rounded != nullptr) store(rounded + i, w);
  }
};

/// y = softmax(x) from its logarithm.
struct Exponential {
  float* y;
  const float* logarithm;
  DUPLEX_PORTABLE void operator()(std::uint32_t i) const { y[i] = expf(logarithm[i]); }
};

/// Computes every sample's cross entropy, -log y[label], or with smoothed labels -sum t log y.
struct CrossEntropy {
  float* losses;
  const float* logarithm;
  const std::int32_t* labels;
  std::uint32_t classes;
  float smoothing = 0.0F;
  DUPLEX_PORTABLE void operator()(std::uint32_t n) const {
    const float* row = logarithm + n * classes;
    float loss = -row[labels[n]];
    if (smoothing > 0.0F) {
      float sum = 0.0F;
      for (std::uint32_t c = 0; c < classes; ++c) sum += row[c];
      loss = (1.0F - smoothing) * loss - smoothing * (sum / static_cast<float>(classes));
    }
    losses[n] = loss;
  }
};

/// Computes every sample's squared error, 1/2 * sum (y - t)^2 (3.1). The target t is `on` for the
/// label's class and `off` for the others.
struct SquaredError {
  float* losses;
  const float* y;
  const std::int32_t* labels;
  std::uint32_t classes;
  float on = 1.0F, off = 0.0F;
  DUPLEX_PORTABLE void operator()(std::uint32_t n) const {
    float sum = 0.0F;
    for (std::uint32_t c = 0; c < classes; ++c) {
      const bool right = c == static_cast<std::uint32_t>(labels[n]);
      const float error = y[n * classes + c] - (right ? on : off);
      sum += 0.5F * error * error;
    }
    losses[n] = sum;
  }
};

/// Computes the gradient of both losses, for every element: factor * (y - t).
template <class Value>
struct LossBackward {
  Value* dx;
  const float* y;
  const std::int32_t* labels;
  std::uint32_t classes;
  float factor;
  float on = 1.0F, off = 0.0F;  ///< The target of the label's class, and of the others.
  DUPLEX_PORTABLE void operator()(std::uint32_t i) const {
    const bool right = i % classes == static_cast<std::uint32_t>(labels[i / classes]);
    dx[i] = factor * (y[i] - (right ? on : off));
  }
};

}  // namespace duplex::cudnn
