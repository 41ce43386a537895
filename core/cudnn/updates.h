// What the kernels of the optimisers and of the losses do with one element. The optimisers' are the
// operations of core/optimiser.cpp in the same order: without contraction, the same bits.
#pragma once
#include <cmath>
#include <cstdint>

#include "core/cudnn/portable.h"

namespace duplex::cudnn {

struct Sgd {
  float *weights, *velocity;  ///< velocity null: no momentum.
  const float* gradient;
  float rate, momentum, decay;
  bool nesterov;

  DUPLEX_PORTABLE void operator()(std::uint32_t i) const {
    const float g = gradient[i] + decay * weights[i];
    if (velocity == nullptr) {
      weights[i] -= rate * g;
      return;
    }
    velocity[i] = momentum * velocity[i] + g;
    weights[i] -= rate * (nesterov ? g + momentum * velocity[i] : velocity[i]);
  }
};

struct Adam {
  float *weights, *m, *v;
  const float* gradient;
  float m_scale, v_scale;  ///< rate / (1 - beta1^t) and 1 / (1 - beta2^t).
  float beta1, beta2, epsilon, decay;

  DUPLEX_PORTABLE void operator()(std::uint32_t i) const {
    const float g = gradient[i] + decay * weights[i];
    m[i] = beta1 * m[i] + (1.0F - beta1) * g;
    v[i] = beta2 * v[i] + (1.0F - beta2) * g * g;
    weights[i] -= m_scale * m[i] / (sqrtf(v[i] * v_scale) + epsilon);
  }
};

/// y = softmax(x) from its logarithm.
struct Exponential {
  float* y;
  const float* logarithm;
  DUPLEX_PORTABLE void operator()(std::uint32_t i) const { y[i] = expf(logarithm[i]); }
};

/// For every sample: its cross entropy, -log y[label].
struct CrossEntropy {
  float* losses;
  const float* logarithm;
  const std::int32_t* labels;
  std::uint32_t classes;
  DUPLEX_PORTABLE void operator()(std::uint32_t n) const {
    losses[n] = -logarithm[n * classes + static_cast<std::uint32_t>(labels[n])];
  }
};

/// For every sample: 1/2 * sum (y - onehot(label))^2 (3.1).
struct SquaredError {
  float* losses;
  const float* y;
  const std::int32_t* labels;
  std::uint32_t classes;
  DUPLEX_PORTABLE void operator()(std::uint32_t n) const {
    float sum = 0.0F;
    for (std::uint32_t c = 0; c < classes; ++c) {
      const bool right = c == static_cast<std::uint32_t>(labels[n]);
      const float error = y[n * classes + c] - (right ? 1.0F : 0.0F);
      sum += 0.5F * error * error;
    }
    losses[n] = sum;
  }
};

/// Of both losses, for every element: factor * (y - onehot(label)).
template <class Value>
struct LossBackward {
  Value* dx;
  const float* y;
  const std::int32_t* labels;
  std::uint32_t classes;
  float factor;
  DUPLEX_PORTABLE void operator()(std::uint32_t i) const {
    const bool right = i % classes == static_cast<std::uint32_t>(labels[i / classes]);
    dx[i] = factor * (y[i] - (right ? 1.0F : 0.0F));
  }
};

}  // namespace duplex::cudnn
