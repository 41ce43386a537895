// Tests what the forecast of memory says of a network against what it allocates on its device.
#include <gtest/gtest.h>

#include <numeric>

#include "models/registry.h"
#include "tests/tools/memory/onednn_only.h"
#include "tools/memory/network_memory.h"
#include "tools/memory/resident.h"

namespace duplex::tools {
namespace {

using testing::has_onednn;
using testing::without_onednn;

DeviceSpec one_thread() {
  DeviceSpec computing;
  computing.threads = 1;
  return computing;
}

Model small_model(const std::string& name) {
  models::ModelOptions options;
  options.classes = 10;
  if (name == "googlenet") options.input = 80;
  if (name == "squeezenet" || name == "alexnet") options.input = 67;
  if (name == "resnet34" || name == "vgg16e") options.input = 32;
  return models::build(name, options);
}

void train_a_step(Network& network, bool looks) {
  const auto batch = static_cast<std::size_t>(network.batch());
  const std::vector<float> images(
      static_cast<std::size_t>(network.model().entry(0).shape.elements()) * batch, 0.5F);
  const std::vector<std::int32_t> labels(batch);
  ForwardContext context;
  context.labels = labels.data();
  const auto forward = [&] { network.forward(images.data(), context); };
  if (looks) {
    const KeepingNan keeping(network.device());
    forward();
  } else {
    forward();
  }
  network.backward();
}

class ForecastOf : public ::testing::TestWithParam<const char*> {};

/// The sizes are those of a real network, to the byte, and no operation needs more in a step.
TEST_P(ForecastOf, ANetworkIsWhatItAllocates) {
  const Model model = small_model(GetParam());
  const NetworkMemory forecast = network_memory(model, one_thread(), {3});
  const auto device = one_thread().make();
  Network network(model, *device, 3);
  EXPECT_EQ(forecast.weights, network.weights().desc.bytes);
  EXPECT_EQ(forecast.gradients, network.gradients().desc.bytes);
  EXPECT_EQ(forecast.arena, network.arena_bytes());
  network.initialise(1);
  for (const bool looks : {true, false}) {
    train_a_step(network, looks);
    const OperationMemory after = device->operation_memory();
    EXPECT_EQ(forecast.operations.kept, after.kept);
    EXPECT_EQ(forecast.operations.shared, after.shared);
  }
}

TEST_P(ForecastOf, ANetworksLayersAddUp) {
  const Model model = small_model(GetParam());
  const NetworkMemory forecast = network_memory(model, one_thread(), {3});
  const auto device = one_thread().make();
  Network network(model, *device, 3);
  LayerMemory sum;
  for (const LayerMemory& layer : forecast.layers) {
    sum.parameters += layer.parameters;
    sum.activation += layer.activation;
    sum.gradient += layer.gradient;
    sum.kept += layer.kept;
  }
  std::size_t blocks = 0, parameters = forecast.statistics;
  for (const Lifetime& block : network.plan().blocks) blocks += block.bytes;
  for (const Parameter& parameter : network.parameters())
    parameters += 2 * parameter.weights.desc.bytes;
  EXPECT_EQ(sum.activation + sum.gradient, blocks);
  EXPECT_EQ(sum.parameters, parameters);
  EXPECT_EQ(sum.kept, forecast.operations.kept);
  EXPECT_LE(forecast.arena, blocks + network.plan().blocks.size() * MemoryPlan::alignment);
}

INSTANTIATE_TEST_SUITE_P(Networks, ForecastOf,
                         ::testing::Values("lenet", "squeezenet", "googlenet", "resnet34",
                                           "alexnet", "vgg16e"),
                         [](const auto& info) { return std::string(info.param); });

/// A batch for which this machine may have too little memory is looked at in no memory at all.
TEST(Forecast, TakesNoMemoryItself) {
  if (!has_onednn()) GTEST_SKIP() << without_onednn;
  const Model model = models::build("alexnet", {});
  const std::size_t before = resident_now();
  const NetworkMemory memory = network_memory(model, one_thread(), {2048});
  EXPECT_GT(memory.arena, std::size_t{4} << 30);
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP()
      << "the forecast is there, but AddressSanitizer keeps memory that was freed, so that "
         "what it took cannot be told";
#endif
  EXPECT_LT(resident_now(), before + (std::size_t{128} << 20));
}

/// bf16 halves what a GPU keeps of activations, and adds a copy of the weights of half their size.
/// Nothing else of theirs is staged but gradients of convolutions.
TEST(Forecast, KnowsThePrecisionOfAGpu) {
  const Model model = models::build("vgg16e", {});
  DeviceSpec gpu;
  gpu.device = "cuda";
  gpu.layout = "nchw";
  const NetworkMemory full = network_memory(model, gpu, {8});
  gpu.precision = "bf16";
  const NetworkMemory half = network_memory(model, gpu, {8});
  EXPECT_EQ(full.weights, half.weights);
  EXPECT_EQ(full.gradients, half.gradients);
  EXPECT_EQ(full.rounded, 0U);
  EXPECT_EQ(2 * half.rounded, half.weights);
  const std::size_t largest_filters = std::size_t{512} * 512 * 3 * 3 * 2;
  EXPECT_EQ(half.operations.shared, std::vector<std::size_t>{largest_filters});
  EXPECT_NEAR(static_cast<double>(half.arena) / static_cast<double>(full.arena), 0.5, 0.05);
}

/// A GPU has plain tensors in NCHW, so what its network takes follows from shapes alone.
TEST(Forecast, OfAGpuFollowsFromShapes) {
  const Model model = models::build("lenet", {});
  DeviceSpec gpu;
  gpu.device = "cuda";
  gpu.layout = "nchw";
  const NetworkMemory memory = network_memory(model, gpu, {5});
  for (std::size_t node = 0; node < model.nodes().size(); ++node)
    EXPECT_EQ(memory.layers[node].activation,
              5 * static_cast<std::size_t>(model.nodes()[node].shape.elements()) * sizeof(float));
}

}  // namespace
}  // namespace duplex::tools
