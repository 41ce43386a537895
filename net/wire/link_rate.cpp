#include "net/wire/link_rate.h"

#include <algorithm>

namespace duplex::net {
namespace {

constexpr std::size_t segment = 1448;  ///< Bytes that a segment of Ethernet carries.
constexpr double usual_s = 1e-3;

Clock::duration time_of(std::size_t bytes, double rate) {
  return std::chrono::duration_cast<Clock::duration>(
      std::chrono::duration<double>(static_cast<double>(bytes) / rate));
}

}  // namespace

TokenBucket::TokenBucket(double bytes_per_second)
    : rate_(bytes_per_second),
      most_(std::max(segment, static_cast<std::size_t>(std::min(bytes_per_second * usual_s, 1e9)))),
      next_(Clock::now()) {}

Clock::time_point TokenBucket::ready() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return next_;
}

void TokenBucket::take(std::size_t bytes, bool waited) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!waited) next_ = std::max(next_, Clock::now() - time_of(burst, rate_));
  next_ += time_of(bytes, rate_);
}

}  // namespace duplex::net
