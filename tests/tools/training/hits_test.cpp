// Tests the hits that a training counts for its line of progress.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "core/device.h"
#include "core/random.h"
#include "layers/network.h"
#include "models/registry.h"
#include "tools/training/network_computation.h"

namespace duplex::tools {
namespace {

constexpr std::size_t samples = 16, classes = 10, hit = 5;

Model lenet() {
  models::ModelOptions options;
  options.classes = classes;
  return models::build("lenet", options);
}

/// Another network with the same weights says which outputs are the greatest; the labels of the
/// first samples are those, and the others' are not.
TEST(Hits, AreOfTheBatchAndOfTheWeightsBeforeItsUpdate) {
  std::vector<float> images(samples * 28 * 28);
  const RandomStream random(1, 7);
  for (std::size_t i = 0; i < images.size(); ++i)
    images[i] = static_cast<float>(random.below(i, 256)) / 64.0F - 2.0F;
  for (const char* name : {"reference", "cpu"}) {
    const auto device = make_device(name, 1);
    Network other(lenet(), *device, samples, false), network(lenet(), *device, samples);
    other.initialise(3);
    network.initialise(3);
    other.forward(images.data(), {});
    std::vector<float> outputs(samples * classes);
    other.outputs(outputs.data());
    std::vector<std::int32_t> labels;
    for (std::size_t i = 0; i < samples; ++i) {
      const auto own = outputs.begin() + static_cast<std::ptrdiff_t>(i * classes);
      const auto greatest = static_cast<std::int32_t>(std::max_element(own, own + classes) - own);
      labels.push_back(i < hit ? greatest : (greatest + 1) % static_cast<std::int32_t>(classes));
    }
    datasets::Batch batch;
    batch.pixels = images.data();
    batch.labels = labels.data();
    batch.count = samples;
    BatchSource source;
    source.next = [&]() -> const datasets::Batch& { return batch; };
    source.bytes = images.size() * sizeof(float);
    for (const bool counts : {false, true}) {
      NetworkComputation computation(network, source, 1, [](std::uint64_t) { return false; });
      if (counts) computation.count_hits();
      computation.begin(0);
      for (std::size_t layer = 0; layer < computation.layers(); ++layer) computation.forward(layer);
      for (std::size_t layer = computation.layers(); layer-- > 0;) computation.backward(layer);
      computation.synchronize();
      const StepOutcome outcome = computation.outcome();
      ASSERT_EQ(outcome.hits.has_value(), counts);
      if (!counts) continue;
      EXPECT_EQ(outcome.hits->right, hit) << name;
      EXPECT_EQ(outcome.hits->samples, samples) << name;
    }
  }
}

}  // namespace
}  // namespace duplex::tools
