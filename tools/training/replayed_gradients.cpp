#include "tools/training/replayed_gradients.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "core/random.h"

namespace duplex::tools {
namespace {

constexpr double update_of_weight = 1.0 / 1400.0;
/// The weights of biases are 0 at first; their updates are a part of this.
constexpr double least_weight = 0.01;

/// There are as many numbers as a prime, so that they repeat otherwise in every block.
std::vector<float> normal_numbers() {
  constexpr std::size_t count = 65521;
  const RandomStream random(1, stream_of("replayed gradients"));
  std::vector<float> numbers(count);
  for (std::size_t i = 0; i < count; ++i) numbers[i] = random.normal(i);
  return numbers;
}

double root_mean_square(const float* values, std::size_t count) {
  double sum = 0.0;
  for (std::size_t i = 0; i < count; ++i) sum += double{values[i]} * double{values[i]};
  return std::sqrt(sum / static_cast<double>(std::max<std::size_t>(count, 1)));
}

}  // namespace

void draw_gradients(const std::vector<Span>& spans, const OptimiserSpec& optimiser, double rate) {
  const std::vector<float> numbers = normal_numbers();
  const double gathered = rate > 0.0 ? rate / (1.0 - double{optimiser.momentum}) : 1.0;
  std::size_t next = 0;
  for (const Span& span : spans) {
    const double weight = std::max(root_mean_square(span.weights, span.count), least_weight);
    const auto width = static_cast<float>(update_of_weight * weight / gathered);
    const auto fill = [&](float* values, std::size_t count) {
      for (std::size_t i = 0; i < count; ++i) {
        values[i] = width * numbers[next];
        next = next + 1 < numbers.size() ? next + 1 : 0;
      }
    };
    if (span.gradient != nullptr) fill(span.gradient, span.count);
    if (span.factors != nullptr) fill(span.factors, span.factor_count);
  }
}

}  // namespace duplex::tools
