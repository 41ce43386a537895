#include "core/optimiser.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace duplex {
namespace {

/// Returns cos(pi x) for x from 0 to 1. All owners of a run need the same bits, and the last ones
/// of the system's own function differ between systems.
double half_wave(double x) {
  if (x > 0.5) return -half_wave(1.0 - x);
  constexpr double pi = 3.141592653589793;
  double sum = 1.0;
  for (int n = 24; n > 0; n -= 2) sum = 1.0 - sum * (pi * x) * (pi * x) / (n * (n - 1));
  return sum;
}

/// NaN stays NaN.
float clipped(float value, float bound) {
  return std::min(std::max(value, -bound), bound);
}

/// `clip` changes an element of the gradient first.
template <class Clip>
void sgd(const OptimiserStep& step, std::size_t count, float* w, const float* gradient,
         float* velocity, const Clip& clip) {
  const float rate = step.rate;
  const float decay = step.spec.weight_decay;
  const float momentum = step.spec.momentum;
  if (velocity == nullptr) {
    for (std::size_t i = 0; i < count; ++i) w[i] -= rate * (clip(gradient[i]) + decay * w[i]);
  } else if (step.spec.nesterov) {
    for (std::size_t i = 0; i < count; ++i) {
      const float g = clip(gradient[i]) + decay * w[i];
      velocity[i] = momentum * velocity[i] + g;
      w[i] -= rate * (g + momentum * velocity[i]);
    }
  } else {
    for (std::size_t i = 0; i < count; ++i) {
      velocity[i] = momentum * velocity[i] + (clip(gradient[i]) + decay * w[i]);
      w[i] -= rate * velocity[i];
    }
  }
}

template <class Clip>
void adam(const OptimiserStep& step, std::size_t count, float* w, const float* gradient, float* m,
          float* v, const Clip& clip) {
  const OptimiserSpec& spec = step.spec;
  const auto t = static_cast<double>(step.number);
  const auto m_scale = static_cast<float>(step.rate / (1.0 - std::pow(double{spec.beta1}, t)));
  const auto v_scale = static_cast<float>(1.0 / (1.0 - std::pow(double{spec.beta2}, t)));
  // The compiler takes several elements at once only where these cannot change in the loop.
  const float beta1 = spec.beta1, beta2 = spec.beta2, decay = spec.weight_decay;
  const float epsilon = spec.epsilon;
  for (std::size_t i = 0; i < count; ++i) {
    const float g = clip(gradient[i]) + decay * w[i];
    m[i] = beta1 * m[i] + (1.0F - beta1) * g;
    v[i] = beta2 * v[i] + (1.0F - beta2) * g * g;
    w[i] -= m_scale * m[i] / (std::sqrt(v[i] * v_scale) + epsilon);
  }
}

template <class Clip>
void update_clipped(const OptimiserStep& step, std::size_t count, float* weights,
                    const float* gradient, float* const* state, const Clip& clip) {
  if (step.spec.kind == OptimiserKind::adam) {
    adam(step, count, weights, gradient, state[0], state[1], clip);
  } else {
    sgd(step, count, weights, gradient, step.spec.momentum != 0.0F ? state[0] : nullptr, clip);
  }
}

}  // namespace

int OptimiserSpec::states() const {
  return static_cast<int>(state_names().size());
}

std::vector<std::string> OptimiserSpec::state_names() const {
  if (kind == OptimiserKind::adam) return {"exp_avg", "exp_avg_sq"};
  if (momentum != 0.0F) return {"momentum_buffer"};
  return {};
}

float OptimiserSpec::bound() const {
  return clip_value > 0.0F ? clip_value : std::numeric_limits<float>::infinity();
}

float clip_scale(float clip_norm, const float* gradients, std::size_t count) {
  constexpr std::size_t lanes = 8;  // The compiler takes so many elements at once.
  double sums[lanes] = {};
  std::size_t i = 0;
  for (; i + lanes <= count; i += lanes)
    for (std::size_t lane = 0; lane < lanes; ++lane) {
      const auto value = static_cast<double>(gradients[i + lane]);
      sums[lane] += value * value;
    }
  for (; i < count; ++i) sums[0] += static_cast<double>(gradients[i]) * double{gradients[i]};
  const double norm = std::sqrt(std::accumulate(sums, sums + lanes, 0.0));
  return static_cast<float>(std::min(static_cast<double>(clip_norm) / (norm + 1e-6), 1.0));
}

void update(const OptimiserStep& step, std::size_t count, float* weights, const float* gradient,
            float* const* state) {
  // Clipping takes time in a loop that is bound by computing, so that others go without.
  if (step.scale == 1.0F && step.spec.clip_value == 0.0F)
    return update_clipped(step, count, weights, gradient, state, [](float g) { return g; });
  update_clipped(step, count, weights, gradient, state,
                 [scale = step.scale, bound = step.spec.bound()](float g) {
                   return clipped(g * scale, bound);
                 });
}

float LearningRate::at(std::uint64_t step) const {
  double rate = base;
  if (cosine && step >= warmup) {
    const auto passed = static_cast<double>(std::min(step, steps) - warmup);
    const double part = passed / static_cast<double>(steps - warmup);
    return static_cast<float>(least + (base - least) * (1.0 + half_wave(part)) / 2.0);
  }
  for (std::uint64_t boundary : boundaries) {
    if (step >= boundary) rate *= factor;
  }
  if (step < warmup) rate *= static_cast<double>(step + 1) / static_cast<double>(warmup);
  return static_cast<float>(rate);
}

}  // namespace duplex
