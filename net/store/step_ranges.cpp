#include "net/store/step_ranges.h"

#include <algorithm>
#include <iterator>

namespace duplex::net {

void StepRanges::add(const StepRange& range) {
  if (range.count() == 0) return;
  count_ += range.count();
  auto at = ends_.emplace(range.first, range.end).first;
  const auto next = std::next(at);
  if (next != ends_.end() && next->first == at->second) {
    at->second = next->second;
    ends_.erase(next);
  }
  if (at == ends_.begin()) return;
  const auto before = std::prev(at);
  if (before->second != at->first) return;
  before->second = at->second;
  ends_.erase(at);
}

StepRange StepRanges::take_first() {
  if (ends_.empty()) return {};
  const StepRange range{ends_.begin()->first, ends_.begin()->second};
  ends_.erase(ends_.begin());
  count_ -= range.count();
  return range;
}

StepRange StepRanges::take_last(std::uint64_t most) {
  if (ends_.empty() || most == 0) return {};
  const auto last = std::prev(ends_.end());
  const StepRange range{std::max(last->first, last->second - std::min(last->second, most)),
                        last->second};
  last->second = range.first;
  if (last->first == last->second) ends_.erase(last);
  count_ -= range.count();
  return range;
}

}  // namespace duplex::net
