// The bodies of the kernels of batch normalisation (2.9)-(2.12) and of bias gradients: what they do
// with one element, with N that lie side by side (elements.h), and with the sums of one channel.
// Sums are of pairs: terms<N>(i, c) returns the pairs of the elements from offset i on, the first
// of which is of channel c; finish(c, ...) takes the sums of channel c.
#pragma once
#include <cmath>
#include <cstdint>

#include "core/cudnn/kernels/vector.h"

namespace duplex::cudnn {

template <int N>
struct Pairs {
  Floats<N> a{}, b{};
  DUPLEX_PORTABLE void add(const Pairs& others) {
    for (int k = 0; k < N; ++k) {
      a[k] += others.a[k];
      b[k] += others.b[k];
    }
  }
};

/// The statistics that a batch normalisation keeps of its last forward in training. Each array has
/// one number for every channel.
struct Moments {
  float *mean, *inverse_stddev, *scale, *beta;  ///< scale: gamma / sqrt(var + epsilon).
};

/// Returns whether arrays with one number for every channel can be read in groups.
template <int N, class... Arrays>
bool channels_aligned(const View& view, const Arrays*... arrays) {
  return !view.channels_last() || aligned<N>(arrays...);
}

/// Sums the distances from the channel's first value and their squares, in a single pass. If that
/// value lies k standard deviations from the mean, the variance loses about k^2 6e-8 of itself; two
/// passes would lose less.
template <class Value>
struct BatchSums {
  View view;
  const Value* x;

  static constexpr int group = group_of<Value>;
  bool grouped() const { return in_groups<group>(view) && aligned<group>(x); }
  template <int N>
  DUPLEX_PORTABLE Pairs<N> terms(std::uint32_t i, std::uint32_t c) const {
    const Floats<N> first =
        N > 1 && view.channels_last() ? load<N>(x + c) : broadcast<N>(first_of(c));
    Pairs<N> result;
    result.a = map([](float value, float from) { return value - from; }, load<N>(x + i), first);
    result.b = map([](float distance) { return distance * distance; }, result.a);
    return result;
  }
  DUPLEX_PORTABLE float first_of(std::uint32_t c) const { return x[view.offset({0, c, 0, 0})]; }

  Moments moments;
  float *running_mean, *running_var;
  const float *gamma, *beta;
  float epsilon, momentum;
  DUPLEX_PORTABLE void finish(std::uint32_t c, double sum, double squares) const {
    const double count = static_cast<double>(view.n) * view.map();
    const double mean = static_cast<double>(first_of(c)) + sum / count;
    const double about = squares - sum * sum / count;
    const double var = about > 0.0 ? about / count : 0.0;
    const double unbiased = count > 1.0 ? var * count / (count - 1.0) : 0.0;
    const double inverse_stddev = 1.0 / sqrt(var + static_cast<double>(epsilon));
    moments.mean[c] = static_cast<float>(mean);
    moments.inverse_stddev[c] = static_cast<float>(inverse_stddev);
    moments.scale[c] = static_cast<float>(static_cast<double>(gamma[c]) * inverse_stddev);
    moments.beta[c] = beta[c];
    const auto kept = 1.0 - static_cast<double>(momentum);
    running_mean[c] = static_cast<float>(kept * static_cast<double>(running_mean[c]) +
                                         static_cast<double>(momentum) * mean);
    running_var[c] = static_cast<float>(kept * static_cast<double>(running_var[c]) +
                                        static_cast<double>(momentum) * unbiased);
  }
};

/// Adds the elements of `other` to normalised values, where it is not null, then applies ReLU where
/// `rectified`.
template <int N, class Value>
DUPLEX_PORTABLE Floats<N> joined(const Floats<N>& values, const Value* other, bool rectified) {
  Floats<N> result = values;
  if (other != nullptr)
    result = map([](float value, float more) { return value + more; }, result, load<N>(other));
  return map([rectified](float value) { return rectified && value < 0.0F ? 0.0F : value; }, result);
}

template <class Value>
struct Normalise {
  View view;
  Moments moments;
  Value* y;
  const Value* x;
  bool rectified;
  const Value* other = nullptr;  ///< Added to the result, before ReLU, where it is not null.

  static constexpr int group = group_of<Value>;
  bool grouped() const {
    return in_groups<group>(view) && aligned<group>(y, x, other) &&
           channels_aligned<group>(view, moments.mean, moments.scale, moments.beta);
  }
  template <int N = 1>
  DUPLEX_PORTABLE void operator()(std::uint32_t i) const {
    const std::uint32_t c = view.channel(i);
    const auto normalised = [](float value, float mean, float scale, float beta) {
      return (value - mean) * scale + beta;
    };
    const Floats<N> values =
        map(normalised, load<N>(x + i), of_channels<N>(view, moments.mean, c),
            of_channels<N>(view, moments.scale, c), of_channels<N>(view, moments.beta, c));
    store(y + i, joined(values, other == nullptr ? other : other + i, rectified));
  }
};

/// Normalises with the running statistics.
template <class Value>
struct NormaliseFixed {
  View view;
  Value* y;
  const Value* x;
  const float *gamma, *beta, *mean, *var;
  float epsilon;
  bool rectified;
  const Value* other = nullptr;  ///< As for Normalise.

  static constexpr int group = group_of<Value>;
  bool grouped() const {
    return in_groups<group>(view) && aligned<group>(y, x, other) &&
           channels_aligned<group>(view, gamma, beta, mean, var);
  }
  template <int N = 1>
  DUPLEX_PORTABLE void operator()(std::uint32_t i) const {
    const std::uint32_t c = view.channel(i);
    const Floats<N> scale = map([this](float g, float v) { return g / sqrtf(v + epsilon); },
                                of_channels<N>(view, gamma, c), of_channels<N>(view, var, c));
    const auto normalised = [](float value, float from, float by, float shift) {
      return (value - from) * by + shift;
    };
    const Floats<N> values = map(normalised, load<N>(x + i), of_channels<N>(view, mean, c), scale,
                                 of_channels<N>(view, beta, c));
    store(y + i, joined(values, other == nullptr ? other : other + i, rectified));
  }
};

/// Sums for backward: dbeta = sum of dy, dgamma = sum of dy * xhat. Where `rectified`, dy counts
/// only where y was above zero.
template <class Value>
struct GradientSums {
  View view;
  Moments moments;
  const Value *dy, *x;
  bool rectified;

  static constexpr int group = group_of<Value>;
  bool grouped() const {
    return in_groups<group>(view) && aligned<group>(dy, x) &&
           channels_aligned<group>(view, moments.mean, moments.inverse_stddev, moments.scale,
                                   moments.beta);
  }
  /// Returns dy where it counts (a) and xhat (b). No read waits for another.
  template <int N>
  DUPLEX_PORTABLE Pairs<N> masked(std::uint32_t i, std::uint32_t c) const {
    return masked(load<N>(dy + i), load<N>(x + i), c);
  }
  /// Does the same for a dy and an x that have been read.
  template <int N>
  DUPLEX_PORTABLE Pairs<N> masked(const Floats<N>& given, const Floats<N>& value,
                                  std::uint32_t c) const {
    const Floats<N> mean = of_channels<N>(view, moments.mean, c);
    const Floats<N> inverse_stddev = of_channels<N>(view, moments.inverse_stddev, c);
    const Floats<N> scale = of_channels<N>(view, moments.scale, c);
    const Floats<N> beta = of_channels<N>(view, moments.beta, c);
    Pairs<N> result;
    for (int k = 0; k < N; ++k) {
      const float distance = value[k] - mean[k];
      const bool counts = !rectified || distance * scale[k] + beta[k] > 0.0F;
      result.a[k] = counts ? given[k] : 0.0F;
      result.b[k] = distance * inverse_stddev[k];
    }
    return result;
  }
  template <int N>
  DUPLEX_PORTABLE Pairs<N> terms(std::uint32_t i, std::uint32_t c) const {
    return terms(load<N>(dy + i), load<N>(x + i), c);
  }
  template <int N>
  DUPLEX_PORTABLE Pairs<N> terms(const Floats<N>& given, const Floats<N>& value,
                                 std::uint32_t c) const {
    Pairs<N> result = masked(given, value, c);
    result.b = map([](float g, float xhat) { return g * xhat; }, result.a, result.b);
    return result;
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
  GradientSums<Value> sums;
  Value* dx;
  float share;  ///< 1 / count.

  static constexpr int group = group_of<Value>;
  bool grouped() const {
    return sums.grouped() && aligned<group>(dx) &&
           channels_aligned<group>(sums.view, sums.dgamma, sums.dbeta);
  }
  template <int N = 1>
  DUPLEX_PORTABLE void operator()(std::uint32_t i) const {
    const View& view = sums.view;
    const std::uint32_t c = view.channel(i);
    const Pairs<N> from = sums.template masked<N>(i, c);
    const Floats<N> scale = of_channels<N>(view, sums.moments.scale, c);
    const Floats<N> dbeta = of_channels<N>(view, sums.dbeta, c);
    const Floats<N> dgamma = of_channels<N>(view, sums.dgamma, c);
    Floats<N> result;
    for (int k = 0; k < N; ++k)
      result[k] = scale[k] * (from.a[k] - share * dbeta[k] - share * from.b[k] * dgamma[k]);
    store(dx + i, result);
  }
};

/// The gradient of a bias: the sum of dy over a channel.
template <class Value>
struct BiasSums {
  View view;
  const Value* dy;

  static constexpr int group = group_of<Value>;
  bool grouped() const { return in_groups<group>(view) && aligned<group>(dy); }
  template <int N>
  DUPLEX_PORTABLE Pairs<N> terms(std::uint32_t i, std::uint32_t) const {
    Pairs<N> result;
    result.a = load<N>(dy + i);
    return result;
  }

  float* dbias;
  DUPLEX_PORTABLE void finish(std::uint32_t c, double sum, double) const {
    dbias[c] = static_cast<float>(sum);
  }
};

}  // namespace duplex::cudnn
