#include "course/harness/values.h"

#include "core/random.h"

namespace duplex::course {

std::vector<float> random_values(std::size_t count, std::uint64_t seed) {
  std::vector<float> values(count);
  RandomStream(seed, stream_of("course")).fill_uniform(values.data(), count);
  for (float& value : values) value = 2.0F * value - 1.0F;
  return values;
}

std::string element(const std::string& name, std::size_t i,
                    const std::vector<std::int64_t>& extents) {
  std::string text;
  for (std::size_t axis = extents.size(); axis-- > 0;) {
    const auto extent = static_cast<std::size_t>(extents[axis]);
    text = "[" + std::to_string(i % extent) + "]" + text;
    i /= extent;
  }
  return name + text;
}

}  // namespace duplex::course
