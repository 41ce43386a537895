// Adds up the gradients of several batches before an update by their mean.
#pragma once
#include <cstdint>
#include <vector>

#include "layers/network.h"

namespace duplex {

/// Sums in the order of the batches, so that the mean has the bits of `count` ranks' mean (3.12).
class MeanGradients {
 public:
  /// The network must outlive it.
  MeanGradients(Network& network, std::uint64_t count);

  /// Takes the gradient that the network has of a parameter, of batch `number` (0 .. count-1):
  /// every parameter's batches come in order. With the last one the network's gradient becomes the
  /// mean. Returns whether it has.
  bool add(std::size_t parameter, std::uint64_t number);
  std::uint64_t count() const { return count_; }

 private:
  Network& network_;
  std::uint64_t count_;
  std::vector<std::vector<float>> sums_;  ///< Sums by parameter, in logical order.
  std::vector<float> next_;
};

}  // namespace duplex
