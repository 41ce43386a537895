// Tests the logits that a network gives beside its probabilities, and the name that it gives of a
// parameter that is not finite.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "layers/network.h"
#include "tests/layers/devices.h"
#include "tests/layers/small_networks.h"

namespace duplex {
namespace {

using test::Batch;

constexpr std::int64_t batch_size = 4;

using NetworkTells = test::OnEveryBackend;

std::vector<float> probabilities_of(const Network& network) {
  std::vector<float> values(static_cast<std::size_t>(network.batch() * network.model().classes()));
  network.outputs(values.data());
  return values;
}

TEST_P(NetworkTells, LogitsAreWhatTheLastSoftmaxWasGiven) {
  Network network(test::all_kinds(), *device, batch_size);
  const Batch batch(network.model(), batch_size);
  network.initialise(1);
  for (const ForwardContext& context : {batch.training(), batch.evaluation()}) {
    network.forward(batch.images.data(), context);
    const std::vector<float> probabilities = probabilities_of(network);
    std::vector<float> logits(probabilities.size());
    network.logits(logits.data());
    const std::size_t classes = logits.size() / static_cast<std::size_t>(batch_size);
    for (std::size_t begin = 0; begin < logits.size(); begin += classes) {
      double sum = 0.0;
      for (std::size_t i = begin; i < begin + classes; ++i) sum += std::exp(double{logits[i]});
      for (std::size_t i = begin; i < begin + classes; ++i)
        EXPECT_NEAR(std::exp(double{logits[i]}) / sum, probabilities[i], 1e-6);
    }
  }
}

TEST_P(NetworkTells, NamesWhatIsNotFinite) {
  Network network(test::all_kinds(), *device, batch_size);
  network.initialise(1);
  EXPECT_EQ(network.not_finite(), "");
  for (Parameter* parameter : network.state()) {
    std::vector<float> values(static_cast<std::size_t>(parameter->spec.shape.elements()));
    device->download(values.data(), parameter->weights);
    const float before = values.back();
    values.back() = std::numeric_limits<float>::quiet_NaN();
    device->upload(parameter->weights, values.data());
    EXPECT_EQ(network.not_finite(), parameter->name);
    values.back() = before;
    device->upload(parameter->weights, values.data());
  }
  EXPECT_EQ(network.not_finite(), "");
}

INSTANTIATE_TEST_SUITE_P(Backends, NetworkTells, test::every_backend(),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace duplex
