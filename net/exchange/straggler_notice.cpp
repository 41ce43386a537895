#include "net/exchange/straggler_notice.h"

#include <algorithm>
#include <utility>

namespace duplex::net {

StragglerNotice::StragglerNotice(std::chrono::milliseconds timeout,
                                 std::function<void(const std::string&)> log)
    : least_(std::min<Clock::duration>(timeout / 4, patience)), log_(std::move(log)) {}

bool StragglerNotice::due(Clock::duration waited) const {
  if (!log_ || waited < least_) return false;
  return last_ == Deadline() || Clock::now() - last_ >= pause;
}

void StragglerNotice::tell(const std::string& line) {
  last_ = Clock::now();
  log_(line);
}

}  // namespace duplex::net
