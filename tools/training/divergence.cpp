#include "tools/training/divergence.h"

#include <cmath>

namespace duplex::tools {

bool looks_for_nan(std::uint64_t step, std::uint64_t steps) {
  constexpr std::uint64_t period = 100;
  const std::uint64_t count = step + 1;
  const bool power_of_two = (count & (count - 1)) == 0;
  return count == steps || (count < period ? power_of_two : count % period == 0);
}

Error diverged(const std::string& when, const std::string& what) {
  return Error(when + ": " + what + " is no longer finite; try a smaller --lr");
}

void require_finite_loss(std::uint64_t step, const std::optional<double>& loss) {
  if (loss && !std::isfinite(*loss)) throw diverged("step " + std::to_string(step), "the loss");
}

void require_finite(Network& network, const std::string& when) {
  const std::string name = network.not_finite();
  if (!name.empty()) throw diverged(when, name);
}

void require_finite(const Accuracy& accuracy, Network& network) {
  const std::string name = network.not_finite();
  if (accuracy.not_finite > 0) {
    throw Error(std::to_string(accuracy.not_finite) + " of " + std::to_string(accuracy.samples) +
                " test images have outputs that are not finite" +
                (name.empty() ? "" : "; " + name + " is not finite"));
  }
  if (!name.empty()) throw Error("this accuracy is of weights that are not finite: " + name);
}

}  // namespace duplex::tools
