// Tests that a machine alone clips the gradients of all parameters by their common norm.
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "core/error.h"
#include "layers/exchange/local_exchange.h"
#include "layers/network.h"
#include "tests/layers/devices.h"
#include "tests/layers/small_networks.h"
#include "tests/layers/train_step.h"

namespace duplex {
namespace {

using Clipping = test::OnEveryBackend;

OptimiserSpec clipped_to(float norm) {
  OptimiserSpec spec;
  spec.clip_norm = norm;
  return spec;
}

/// The norm of what one step of plain SGD at a rate of 1 takes off the weights: of the gradients.
double step_norm(Device& device, const OptimiserSpec& spec) {
  Network network(test::all_kinds(), device, 4);
  LocalExchange exchange(network, spec, {1.0, {}, 0.1, 0});
  const test::Batch batch(network.model(), 4);
  network.initialise(3);
  const auto before = test::values_of(device, network.weights());
  exchange.begin(0);
  test::forward_and_backward(network, batch.images.data(), batch.training(), exchange);
  exchange.end();
  const auto after = test::values_of(device, network.weights());
  double sum = 0.0;
  for (std::size_t i = 0; i < after.size(); ++i)
    sum += std::pow(double{after[i]} - double{before[i]}, 2);
  return std::sqrt(sum);
}

TEST_P(Clipping, ScalesTheNormOfAllGradients) {
  const double whole = step_norm(*device, {});
  const auto half = static_cast<float>(whole / 2.0);
  EXPECT_NEAR(step_norm(*device, clipped_to(half)) / whole, 0.5, 1e-4);
  EXPECT_NEAR(step_norm(*device, clipped_to(4.0F * half)) / whole, 1.0, 1e-6);
}

TEST_P(Clipping, ByTheNormNeedsAllGradients) {
  Network network(test::all_kinds(), *device, 4);
  EXPECT_THROW(LocalExchange(network, clipped_to(1.0F), {}, Updates::each), Error);
}

INSTANTIATE_TEST_SUITE_P(Backends, Clipping, test::every_backend(),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace duplex
