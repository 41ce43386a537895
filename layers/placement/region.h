// A box of a map: some channels of some samples.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "layers/layer.h"

namespace duplex {

struct Region {
  std::int64_t first_sample = 0, samples = 0;
  Channels channels;

  std::int64_t end_sample() const { return first_sample + samples; }
  bool empty() const { return samples <= 0 || channels.count() <= 0; }
  /// The number of its elements, where a channel of a sample has `map` of them.
  std::size_t elements(std::int64_t map) const {
    return static_cast<std::size_t>(samples * channels.count() * map);
  }
  bool operator==(const Region& other) const {
    return first_sample == other.first_sample && samples == other.samples &&
           channels == other.channels;
  }
  bool operator!=(const Region& other) const { return !(*this == other); }
};

inline Region intersection(const Region& a, const Region& b) {
  const std::int64_t first = std::max(a.first_sample, b.first_sample);
  const std::int64_t channel = std::max(a.channels.first, b.channels.first);
  return {first,
          std::max<std::int64_t>(std::min(a.end_sample(), b.end_sample()) - first, 0),
          {channel, std::max(std::min(a.channels.end, b.channels.end), channel)}};
}

/// Calls work(offset in a, offset in b, elements) for every run of `what` that is contiguous in two
/// plain arrays, which hold all of `a` and all of `b`. Both contain `what`.
template <class Work>
void for_each_run(const Region& what, const Region& a, const Region& b, std::int64_t map,
                  const Work& work) {
  const auto offset = [&](const Region& in, std::int64_t sample) {
    return static_cast<std::size_t>(((sample - in.first_sample) * in.channels.count() +
                                     what.channels.first - in.channels.first) *
                                    map);
  };
  const auto run = static_cast<std::size_t>(what.channels.count() * map);
  for (std::int64_t n = what.first_sample; n < what.end_sample(); ++n)
    work(offset(a, n), offset(b, n), run);
}

}  // namespace duplex
