// Tests that the host sleeps where it waits for a GPU, and that copies do not make events anew: the
// stand-in counts both.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "layers/exchange/host_staging.h"
#include "tests/layers/devices.h"
#include "tests/layers/small_networks.h"
#include "tests/layers/train_step.h"

namespace duplex {
namespace {

constexpr std::int64_t batch_size = 4;

/// The stand-in's own counts (tests/stand_in/stand_in.h).
struct Counts {
  long events = 0, spinning_waits = 0;
};

Counts counts() {
  void* library = ::dlopen(std::getenv("DUPLEX_CUDNN"), RTLD_NOW | RTLD_NOLOAD);
  auto* count = reinterpret_cast<void (*)(Counts*)>(::dlsym(library, "duplex_stand_in_counts"));
  Counts result;
  count(&result);
  ::dlclose(library);
  return result;
}

/// The rest of the wire: gradients come, and the weights stay.
struct Unchanged final : Exchange {
  void begin(std::uint64_t) override {}
  void await(std::size_t) override {}
  void push(std::size_t) override {}
  void end() override {}
};

class GpuWaits : public ::testing::TestWithParam<std::string> {};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(GpuWaits);

/// Trains some steps as a worker among others does: it prefetches images, uploads each weight, and
/// downloads each gradient.
void train(Network& network, int steps) {
  Device& device = network.device();
  HostParameters host(network.model(), true);
  host.fill(network.model(), 1, "", [](const ParameterSpec&, const float*) {});
  Unchanged wire;
  HostStaging exchange(network, host, wire);
  const test::Batch batch(network.model(), batch_size);
  for (int step = 0; step < steps; ++step) {
    const auto copy = device.prefetch(batch.images.data(), batch.images.size() * sizeof(float));
    exchange.begin(static_cast<std::uint64_t>(step));
    test::forward_and_backward(network, batch.images.data(), batch.training(), exchange);
    network.synchronize();
    exchange.end();
    network.loss();
    device.copy_waits();
  }
}

TEST_P(GpuWaits, SleepAndTakeEventsFromAPool) {
  const auto device = make_cuda_device();
  Network network(test::all_kinds(), *device, batch_size);
  network.initialise(1);
  const Counts before = counts();
  constexpr int steps = 20;
  train(network, steps);
  const Counts after = counts();
  EXPECT_EQ(after.spinning_waits, before.spinning_waits);
  // A step has two events that measure the wait for each upload, and at most two for each download
  // that is under way; the images and the labels have a few more.
  const long copies = 2 * static_cast<long>(network.parameters().size());
  EXPECT_GT(after.events, before.events);
  EXPECT_LE(after.events - before.events, 2 * copies + 10);
}

std::vector<std::string> stand_ins() {
  if (!has_cuda_device()) return {};
  const std::string description = make_cuda_device()->description();
  if (description.find("stand-in") == std::string::npos) return {};
  return {description};
}

INSTANTIATE_TEST_SUITE_P(StandIn, GpuWaits, ::testing::ValuesIn(stand_ins()),
                         [](const auto&) { return "cuda"; });

}  // namespace
}  // namespace duplex
