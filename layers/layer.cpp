#include "layers/layer.h"

#include <cmath>

namespace duplex {

Initial Initial::he(std::int64_t fan_in, bool relu) {
  const double variance = (relu ? 2.0 : 1.0) / static_cast<double>(fan_in);
  return {0.0F, static_cast<float>(std::sqrt(3.0 * variance))};
}

}  // namespace duplex
