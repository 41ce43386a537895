// Tests what the stand-in for a GPU counts: that the host sleeps where it waits for the GPU, that
// copies do not make events anew, and that tensors are not converted more often than they change.
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "layers/exchange/host_staging.h"
#include "tests/layers/devices.h"
#include "tests/layers/small_networks.h"
#include "tests/layers/stand_in_counts.h"
#include "tests/layers/train_step.h"

namespace duplex {
namespace {

using test::Counts;
using test::counts;

constexpr std::int64_t batch_size = 4;

/// The rest of the wire: gradients come, and the weights stay.
struct Unchanged final : Exchange {
  void begin(std::uint64_t) override {}
  void await(std::size_t) override {}
  void push(std::size_t) override {}
  void end() override {}
};

class GpuCounts : public ::testing::TestWithParam<std::string> {};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(GpuCounts);

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

TEST_P(GpuCounts, SleepAndTakeEventsFromAPool) {
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

/// The stand-in's times are its own (tests/stand_in/clock.h): a busy machine makes them no longer.
TEST_P(GpuCounts, CopiesWaitAsLongInEveryRun) {
  std::vector<double> waits;
  for (int run = 0; run < 3; ++run) {
    const auto device = make_cuda_device();
    Network network(test::all_kinds(), *device, batch_size);
    network.initialise(1);
    test::Batch batch(network.model(), batch_size);
    const std::size_t bytes = batch.images.size() * sizeof(float);
    const auto pinned = device->pin(batch.images.data(), bytes);  // Else the host would wait.
    network.synchronize();
    const auto copy = device->prefetch(batch.images.data(), bytes);
    network.forward(batch.images.data(), batch.training());
    network.synchronize();
    waits.push_back(device->copy_waits().input);
  }
  EXPECT_GT(waits[0], 0.0);
  EXPECT_EQ(waits[1], waits[0]);
  EXPECT_EQ(waits[2], waits[0]);
}

/// A convolution with the tensors of its forward and of its gradient by weights, as a network's
/// first layer has them.
class FirstLayer {
 public:
  FirstLayer(Device& device, const ConvSpec& spec, const TensorDesc& x)
      : device_(device), conv_(device.conv(spec, x)) {
    for (const TensorDesc* desc : {&conv_->x, &conv_->weights, &conv_->bias, &conv_->y})
      tensors_.push_back(tensor(*desc));
    dw_ = tensor(conv_->weights), db_ = tensor(conv_->bias);
    for (Tensor* given : {&tensors_[1], &tensors_[2], &tensors_[3]}) device_.fill(*given, 0.5F);
  }
  const TensorDesc& y() const { return conv_->y; }

  /// Returns the gradient of the weights, where dy is 0.5 everywhere, and adds the kernels of both
  /// directions to `forward` and `backward`.
  std::vector<float> gradient(const std::vector<float>& images, long& forward, long& backward) {
    device_.upload(tensors_[0], images.data());
    const long begin = counts().kernels;
    conv_->forward(tensors_[3], tensors_[0], tensors_[1], tensors_[2]);
    const long middle = counts().kernels;
    device_.fill(tensors_[3], 0.5F);  // It serves as dy.
    const long filled = counts().kernels;
    conv_->backward_weights(dw_, db_, tensors_[3], tensors_[0]);
    forward += middle - begin, backward += counts().kernels - filled;
    return test::values_of(device_, dw_);
  }

 private:
  Tensor tensor(const TensorDesc& desc) {
    memory_.push_back(device_.allocate(desc.bytes));
    return {desc, static_cast<float*>(memory_.back().data())};
  }

  Device& device_;
  std::unique_ptr<Conv> conv_;
  std::vector<Buffer> memory_;
  std::vector<Tensor> tensors_;  ///< x, weights, bias, y.
  Tensor dw_, db_;
};

/// Images come in float32, in planes. The gradient of the first layer's weights finds them as
/// forward has staged them.
TEST_P(GpuCounts, ImagesAreStagedOnce) {
  const auto device = make_cuda_device({0, Precision::bf16, true});
  const Shape shape{2, 3, 6, 6};
  ConvSpec before;
  before.filters = 3;
  before.window = {1, 1, 1, 1, {}};
  const TensorDesc staged = device->conv(before, plain_desc(shape))->y;
  ConvSpec spec;
  spec.filters = 4;
  spec.window = {3, 3, 1, 1, {1, 1, 1, 1}};
  spec.gradients = Gradients::weights;
  FirstLayer first(*device, spec, plain_desc(shape)), other(*device, spec, staged);
  for (const std::uint64_t seed : {1, 2}) {
    std::vector<float> images(static_cast<std::size_t>(shape.elements()));
    RandomStream(seed, 1).fill_uniform(images.data(), images.size());
    long forward = 0, backward = 0, other_forward = 0, other_backward = 0;
    const std::vector<float> gradient = first.gradient(images, forward, backward);
    EXPECT_EQ(gradient, other.gradient(images, other_forward, other_backward));
    EXPECT_EQ(forward, other_forward + 1);
    EXPECT_EQ(backward, other_backward);
  }
}

/// The sum of an addition's gradients also begins the backward of the normalisation before it,
/// which has one kernel left.
TEST_P(GpuCounts, ASumOfGradientsSumsForTheNormalisation) {
  const auto device = make_cuda_device();
  Network network(test::all_kinds(), *device, batch_size);
  network.initialise(1);
  std::map<std::string, long> of;
  long before = 0;
  network.observe([&](std::size_t node, Phase phase, std::int64_t, std::int64_t) {
    const long now = counts().kernels;
    if (phase == Phase::backward) of[network.model().nodes()[node].name] = now - before;
    before = now;
  });
  const test::Batch batch(network.model(), batch_size);
  network.forward(batch.images.data(), batch.training());
  network.backward();
  EXPECT_EQ(of.at("sum4"), 2);  // It sums parts of channels, then the parts.
  EXPECT_EQ(of.at("down_bn"), 1);
  EXPECT_EQ(of.at("bn2"), 3);  // It has no addition behind it.
}

INSTANTIATE_TEST_SUITE_P(StandIn, GpuCounts, ::testing::ValuesIn(test::stand_ins()),
                         [](const auto&) { return "cuda"; });

}  // namespace
}  // namespace duplex
