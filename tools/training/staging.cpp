#include "tools/training/staging.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "core/clock.h"

namespace duplex::tools {

StagingTimes measure_staging(Network& network) {
  constexpr int repeats = 5;
  constexpr double never = std::numeric_limits<double>::infinity();
  Device& device = network.device();
  std::vector<std::vector<float>> gradients, weights;
  for (const Parameter& parameter : network.parameters()) {
    const auto count = static_cast<std::size_t>(parameter.weights.shape().elements());
    gradients.emplace_back(count);
    weights.emplace_back(count);
    device.download(weights.back().data(), parameter.weights);
  }
  StagingTimes best{never, never};
  for (int repeat = 0; repeat < repeats; ++repeat) {
    const std::int64_t begin = clock_ns();
    for (std::size_t p = 0; p < gradients.size(); ++p)
      device.download(gradients[p].data(), network.parameters()[p].gradient);
    const std::int64_t between = clock_ns();
    for (std::size_t p = 0; p < weights.size(); ++p)
      device.upload(network.parameters()[p].weights, weights[p].data());
    const std::int64_t end = clock_ns();
    best.download = std::min(best.download, seconds(between - begin));
    best.upload = std::min(best.upload, seconds(end - between));
  }
  return best;
}

}  // namespace duplex::tools
