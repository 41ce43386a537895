// Quartiles of any number of values, in bounded memory.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "tools/text/quartiles.h"

namespace duplex::tools {

/// Keeps all of the first `most` values; from then on a random sample of so many, in which every
/// value is as likely as any other (Vitter, "Random Sampling with a Reservoir", 1985, Algorithm R).
/// Samples that got equally many values have kept those of the same places.
class SampledValues {
 public:
  explicit SampledValues(std::size_t most = 4096) : most_(most) {}

  void add(double value);
  /// Returns how many there were.
  std::uint64_t count() const { return count_; }
  /// Returns the quartiles of those that were kept, with the count of all.
  Quartiles quartiles() const;

 private:
  std::size_t most_;
  std::uint64_t count_ = 0;
  std::vector<double> values_;
};

}  // namespace duplex::tools
