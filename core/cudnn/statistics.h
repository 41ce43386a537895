// What the kernels of batch normalisation (2.9)-(2.12) and of bias gradients do with one element,
// and with the sums of one channel. Sums are of pairs: map(i, c) gives those of the element at
// offset i of channel c, finish(c, ...) takes a channel's.
#pragma once
#include <cmath>
#include <cstdint>

#include "core/cudnn/view.h"

namespace duplex::cudnn {

struct Pair {
  float a = 0.0F, b = 0.0F;
};

/// What a batch normalisation keeps of its last forward in training, an array a channel.
struct Moments {
  float *mean, *inverse_deviation, *scale, *beta;  ///< scale: gamma / sqrt(var + epsilon).
};

DUPLEX_PORTABLE inline float normalised(const Moments& m, std::uint32_t c, float x) {
  return (x - m.mean[c]) * m.scale[c] + m.beta[c];
}

/// Distances from the channel's first value, which no mean is far from, and their squares: one pass
/// that loses no more than two would.
template <class Value>
struct BatchSums {
  View view;
  const Value* x;
  DUPLEX_PORTABLE Pair map(std::uint32_t i, std::uint32_t c) const {
    const float distance = float{x[i]} - float{x[view.offset({0, c, 0, 0})]};
    return {distance, distance * distance};
  }

  Moments moments;
  float *running_mean, *running_var;
  const float *gamma, *beta;
  float epsilon, momentum;
  DUPLEX_PORTABLE void finish(std::uint32_t c, double sum, double squares) const {
    const double count = static_cast<double>(view.n) * view.map();
    const double mean = static_cast<double>(float{x[view.offset({0, c, 0, 0})]}) + sum / count;
    const double about = squares - sum * sum / count;
    const double var = about > 0.0 ? about / count : 0.0;
    const double unbiased = count > 1.0 ? var * count / (count - 1.0) : 0.0;
    const double inverse_deviation = 1.0 / sqrt(var + static_cast<double>(epsilon));
    moments.mean[c] = static_cast<float>(mean);
    moments.inverse_deviation[c] = static_cast<float>(inverse_deviation);
    moments.scale[c] = static_cast<float>(static_cast<double>(gamma[c]) * inverse_deviation);
    moments.beta[c] = beta[c];
    const auto kept = 1.0 - static_cast<double>(momentum);
    running_mean[c] = static_cast<float>(kept * static_cast<double>(running_mean[c]) +
                                         static_cast<double>(momentum) * mean);
    running_var[c] = static_cast<float>(kept * static_cast<double>(running_var[c]) +
                                        static_cast<double>(momentum) * unbiased);
  }
};

template <class Value>
struct Normalise {
  View view;
  Moments moments;
  Value* y;
  const Value* x;
  bool rectified;
  DUPLEX_PORTABLE void operator()(std::uint32_t i) const {
    const float value = normalised(moments, view.channel(i), x[i]);
    y[i] = rectified && value < 0.0F ? 0.0F : value;
  }
};

/// With running statistics.
template <class Value>
struct NormaliseFixed {
  View view;
  Value* y;
  const Value* x;
  const float *gamma, *beta, *mean, *var;
  float epsilon;
  bool rectified;
  DUPLEX_PORTABLE void operator()(std::uint32_t i) const {
    const std::uint32_t c = view.channel(i);
    const float value = (float{x[i]} - mean[c]) * (gamma[c] / sqrtf(var[c] + epsilon)) + beta[c];
    y[i] = rectified && value < 0.0F ? 0.0F : value;
  }
};

/// The sums of backward: dbeta = sum of dy, dgamma = sum of dy * xhat. dy counts where y was above
/// zero.
template <class Value>
struct GradientSums {
  Moments moments;
  const Value *dy, *x;
  bool rectified;
  DUPLEX_PORTABLE float masked(std::uint32_t i, std::uint32_t c) const {
    return rectified && !(normalised(moments, c, x[i]) > 0.0F) ? 0.0F : float{dy[i]};
  }
  DUPLEX_PORTABLE Pair map(std::uint32_t i, std::uint32_t c) const {
    const float g = masked(i, c);
    return {g, g * (float{x[i]} - moments.mean[c]) * moments.inverse_deviation[c]};
  }

  float *dgamma, *dbeta;
  DUPLEX_PORTABLE void finish(std::uint32_t c, double sum, double with_xhat) const {
    dbeta[c] = static_cast<float>(sum);
    dgamma[c] = static_cast<float>(with_xhat);
  }
};

/// dx = gamma / sqrt(var + epsilon) * (dy - dbeta / count - xhat * dgamma / count).
template <class Value>
struct NormaliseBackward {
  View view;
  GradientSums<Value> sums;
  Value* dx;
  float share;  ///< 1 / count.
  DUPLEX_PORTABLE void operator()(std::uint32_t i) const {
    const std::uint32_t c = view.channel(i);
    const Moments& m = sums.moments;
    const float xhat = (float{sums.x[i]} - m.mean[c]) * m.inverse_deviation[c];
    dx[i] =
        m.scale[c] * (sums.masked(i, c) - share * sums.dbeta[c] - share * xhat * sums.dgamma[c]);
  }
};

/// The gradient of a bias: the sum of dy over a channel.
template <class Value>
struct BiasSums {
  const Value* dy;
  DUPLEX_PORTABLE Pair map(std::uint32_t i, std::uint32_t) const { return {float{dy[i]}, 0.0F}; }

  float* dbias;
  DUPLEX_PORTABLE void finish(std::uint32_t c, double sum, double) const {
    dbias[c] = static_cast<float>(sum);
  }
};

}  // namespace duplex::cudnn
