// Tests the average of weights against PyTorch's AveragedModel, and that a network gets its own
// weights back.
#include "layers/exchange/moving_average.h"

#include <gtest/gtest.h>

#include "tests/core/recipes_recorded.h"
#include "tests/layers/devices.h"
#include "tests/layers/small_networks.h"

namespace duplex {
namespace {

ParameterSpec three() {
  ParameterSpec spec;
  spec.name = "three";
  spec.shape = Shape{3};
  return spec;
}

/// Does nothing but be there.
class Idle final : public Exchange {
 public:
  void begin(std::uint64_t) override {}
  void await(std::size_t) override {}
  void push(std::size_t) override {}
  void end() override {}
};

/// Weights are awaited in each step, those of no update first, and once more between two steps.
template <class Recorded>
void expect_averages(double decay, const Recorded& expected) {
  MovingAverage average({three()}, decay);
  Idle idle;
  std::vector<float> weights{9.0F, 9.0F, 9.0F};
  MovingAverageExchange exchange(idle, average, 1, [&](std::size_t) { return weights.data(); });
  exchange.begin(0);
  exchange.await(0);
  for (std::size_t update = 0; update < 4; ++update) {
    weights.assign(recorded::updates.begin() + static_cast<std::ptrdiff_t>(3 * update),
                   recorded::updates.begin() + static_cast<std::ptrdiff_t>(3 * update + 3));
    exchange.await(0);
    exchange.begin(update + 1);
    exchange.await(0);
    std::vector<float> found(3);
    average.state().at(0).get(found.data());
    for (std::size_t i = 0; i < 3; ++i)
      EXPECT_NEAR(found[i], expected[3 * update + i], 1e-6) << "update " << update;
  }
}

TEST(MovingAverage, IsThatOfPyTorch) {
  expect_averages(0.9, recorded::average_slow);
  expect_averages(0.25, recorded::average_fast);
}

TEST(MovingAverage, GoesOnFromItsState) {
  const auto weights = [](std::size_t update) { return recorded::updates.data() + 3 * update; };
  MovingAverage whole({three()}, 0.9), first({three()}, 0.9), second({three()}, 0.9);
  for (std::size_t update = 0; update < 4; ++update) {
    whole.add(0, update + 1, weights(update));
    if (update < 2) first.add(0, update + 1, weights(update));
  }
  EXPECT_EQ(first.state().at(0).name, "optimizer.ema.three");
  std::vector<float> values(3), expected(3);
  first.state().at(0).get(values.data());
  second.state().at(0).set(values.data());
  for (std::size_t update = 2; update < 4; ++update) second.add(0, update + 1, weights(update));
  second.state().at(0).get(values.data());
  whole.state().at(0).get(expected.data());
  EXPECT_EQ(values, expected);
}

using MovingAverageOn = test::OnEveryBackend;

/// The newest weights are taken in for that time alone.
TEST_P(MovingAverageOn, StandsInForTheWeights) {
  Network network(test::all_kinds(), *device, 2);
  network.initialise(3);
  const auto before = test::state_of(network);
  const std::vector<ParameterSpec> specs = network.model().trained();
  MovingAverage average(specs, 0.75);
  for (std::size_t p = 0; p < specs.size(); ++p) {
    const std::vector<float> ones(static_cast<std::size_t>(specs[p].shape.elements()), 1.0F);
    average.add(p, 1, ones.data());
  }
  const auto own = test::values_of(*device, network.parameters()[0].weights);
  bool ran = false;
  average.replace(network, 2, [&] {
    const auto stand_in = test::values_of(*device, network.parameters()[0].weights);
    for (std::size_t i = 0; i < own.size(); ++i)
      EXPECT_NEAR(stand_in[i], 1.0F + 0.25F * (own[i] - 1.0F), 1e-6);
    ran = true;
  });
  EXPECT_TRUE(ran);
  EXPECT_TRUE(test::state_of(network) == before);
}

INSTANTIATE_TEST_SUITE_P(Backends, MovingAverageOn, test::every_backend(),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace duplex
