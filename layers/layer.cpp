#include "layers/layer.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"

namespace duplex {

Initial Initial::he(std::int64_t fan_in, bool relu) {
  const double variance = (relu ? 2.0 : 1.0) / static_cast<double>(fan_in);
  return {0.0F, static_cast<float>(std::sqrt(3.0 * variance))};
}

void draw_initial(const ParameterSpec& spec, std::uint64_t seed, float* values) {
  const auto count = static_cast<std::size_t>(spec.shape.elements());
  if (spec.initial.bound == 0.0F) {
    std::fill_n(values, count, spec.initial.value);
    return;
  }
  RandomStream(seed, stream_of(spec.rows.parameter.empty() ? spec.name : spec.rows.parameter))
      .fill_uniform(values, count, static_cast<std::uint64_t>(spec.rows.first));
  for (std::size_t i = 0; i < count; ++i)
    values[i] = (2.0F * values[i] - 1.0F) * spec.initial.bound;
}

void BoundLayer::forward_into_sum(Tensor&, const Tensor&, bool, const std::vector<Tensor>&,
                                  std::vector<Tensor>&, const ForwardContext&) {
  throw Error("a layer that joins no sum was asked to");
}

void BoundLayer::sum_gradients(Tensor&, const std::vector<Tensor>&, const Tensor*,
                               std::vector<Tensor>&, const std::vector<Tensor>&) {
  throw Error("a layer that joins no sum was asked to sum its gradients");
}

}  // namespace duplex
