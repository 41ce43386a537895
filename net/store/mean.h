// The mean over all workers' gradients (thesis, 3.12), and what each counts in it.
#pragma once
#include <cstdint>
#include <vector>

namespace duplex::net {

/// A gradient is the mean over the samples of one slot. A worker with several slots sends the sum
/// of their gradients; one that trains alone sends their mean, and counts for one slot.
struct MeanSpec {
  /// Samples of each of a worker's slots, by worker; empty: all slots of all workers have as many.
  std::vector<std::int64_t> samples;
  /// Slots of each worker; empty: each has one.
  std::vector<int> slots;
  /// A gradient is a part of the whole one, and their sum is wanted, not their mean.
  bool sum = false;

  /// The factor of each of so many workers' gradients in their sum: 1 where all slots of all
  /// workers have as many samples, so that nothing is rounded; else the samples of its slots.
  std::vector<std::int64_t> factors(int workers) const;
  /// The sum of gradients that are all alike, times their factors, in such gradients: it makes the
  /// sum the mean.
  std::int64_t total(int workers) const;
};

}  // namespace duplex::net
