#include "tools/text/sampled_values.h"

#include "core/random.h"

namespace duplex::tools {

void SampledValues::add(double value) {
  const std::uint64_t place = count_++;
  if (place < most_) {
    values_.push_back(value);
    return;
  }
  static const RandomStream random(0, stream_of("sampled values"));
  const std::uint32_t drawn = random.below(place, static_cast<std::uint32_t>(place + 1));
  if (drawn < most_) values_[drawn] = value;
}

Quartiles SampledValues::quartiles() const {
  Quartiles quartiles = quartiles_of(values_);
  quartiles.count = count_;
  return quartiles;
}

}  // namespace duplex::tools
