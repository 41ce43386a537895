#include "tools/plan/schedule.h"

#include <algorithm>

namespace duplex::tools {

double Schedule::epochs(std::uint64_t after) const {
  return static_cast<double>(samples(after)) / static_cast<double>(epoch_samples);
}

bool Schedule::test_due(std::uint64_t after) const {
  if (test_every <= 0.0 || after == 0 || after % steps_per_round != 0) return false;
  const auto period = std::max<std::uint64_t>(
      1, static_cast<std::uint64_t>(test_every * static_cast<double>(epoch_samples)));
  return samples(after) / period > samples(after - steps_per_round) / period;
}

std::uint64_t Schedule::warm_up() const {
  return std::min<std::uint64_t>(steps / 10, 10);
}

}  // namespace duplex::tools
