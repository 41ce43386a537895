// The hits of a batch of training images, by the outputs that its loss is of.
#pragma once
#include <cstdint>

namespace duplex::tools {

struct Hits {
  std::uint64_t right = 0;    ///< Samples whose class has the greatest output.
  std::uint64_t samples = 0;  ///< All of the batch.
};

}  // namespace duplex::tools
