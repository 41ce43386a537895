// Accuracy: a network's outputs on the test part against its labels.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "datasets/loader.h"
#include "layers/network.h"

namespace duplex::tools {

struct Accuracy {
  std::uint64_t samples = 0;
  double top1 = 0.0, top5 = 0.0;  ///< Fractions.
  double loss = 0.0;              ///< Mean cross-entropy of the outputs.

  std::string str() const;  ///< "top-1 89.12%, top-5 99.80% of 10,000 test pictures".
};

/// Rank of the label's output among all: 0 for the largest. Ties count for the label with the lower
/// number.
std::size_t rank_of_label(const float* outputs, std::size_t classes, std::int32_t label);

/// Runs the network over the whole test part, in batches of its size. Its observer hears nothing
/// of that.
Accuracy evaluate(Network& network, const datasets::Subset& test, int loader_threads);

}  // namespace duplex::tools
