// Random draws, one after the other, which are the same on every machine.
#pragma once
#include <cstddef>
#include <utility>
#include <vector>

#include "core/random.h"

namespace duplex::tools {

class Draws {
 public:
  explicit Draws(std::uint64_t seed) : stream_(seed, stream_of("partition")) {}

  /// A number in [0, bound); 0 < bound < 2^32.
  std::size_t below(std::size_t bound) {
    return stream_.below(next_++, static_cast<std::uint32_t>(bound));
  }
  template <class Item>
  void shuffle(std::vector<Item>& items) {
    for (std::size_t i = items.size(); i > 1; --i) std::swap(items[i - 1], items[below(i)]);
  }

 private:
  RandomStream stream_;
  std::uint64_t next_ = 0;
};

}  // namespace duplex::tools
