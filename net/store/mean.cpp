#include "net/store/mean.h"

#include <algorithm>
#include <functional>

namespace duplex::net {

std::vector<std::int64_t> MeanSpec::factors(int workers) const {
  const bool alike =
      std::adjacent_find(samples.begin(), samples.end(), std::not_equal_to<>()) == samples.end();
  return alike ? std::vector<std::int64_t>(static_cast<std::size_t>(workers), 1) : samples;
}

std::int64_t MeanSpec::total(int workers) const {
  if (sum) return 1;
  const std::vector<std::int64_t> each = factors(workers);
  std::int64_t total = 0;
  for (std::size_t worker = 0; worker < static_cast<std::size_t>(workers); ++worker)
    total += each[worker] * (slots.empty() ? 1 : slots[worker]);
  return total;
}

}  // namespace duplex::net
