#include "tests/core/operations/values.h"

#include <utility>

#include "core/random.h"

namespace duplex::test {

std::vector<float> random_values(const Shape& shape, std::uint64_t seed, float low, float high) {
  std::vector<float> values(static_cast<std::size_t>(shape.elements()));
  RandomStream(seed, stream_of("values")).fill_uniform(values.data(), values.size());
  for (float& value : values) value = low + (high - low) * value;
  return values;
}

std::vector<float> separated_values(const Shape& shape, std::uint64_t seed, float gap) {
  const RandomStream random(seed, stream_of("order"));
  const auto count = static_cast<std::size_t>(shape.elements());
  const std::size_t below_zero = count / 2;
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) {
    values[i] = (static_cast<float>(i) - static_cast<float>(below_zero) + 0.5F) * gap;
    std::swap(values[i], values[random.below(i, static_cast<std::uint32_t>(i + 1))]);
  }
  return values;
}

std::vector<float> exact_values(const Shape& shape, std::uint64_t seed) {
  const RandomStream random(seed, stream_of("eighths"));
  std::vector<float> values(static_cast<std::size_t>(shape.elements()));
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = (static_cast<float>(random.below(i, 17)) - 8.0F) / 8.0F;
  }
  return values;
}

std::vector<std::int32_t> random_labels(std::int64_t count, std::int64_t classes,
                                        std::uint64_t seed) {
  const RandomStream random(seed, stream_of("labels"));
  std::vector<std::int32_t> labels(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < labels.size(); ++i) {
    labels[i] = static_cast<std::int32_t>(random.below(i, static_cast<std::uint32_t>(classes)));
  }
  return labels;
}

}  // namespace duplex::test
