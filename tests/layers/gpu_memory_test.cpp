// Tests that a GPU's memory is given back when its user is gone.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "core/gpu/cuda.h"
#include "core/random.h"
#include "tests/layers/small_networks.h"
#include "tests/temporary_folder.h"

namespace duplex {
namespace {

class GpuMemory : public ::testing::TestWithParam<std::string> {};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(GpuMemory);

/// Trains a step, so that whatever the device allocates is allocated.
void train(Network& network, std::int64_t batch_size) {
  const test::Batch batch(network.model(), batch_size);
  test::initialise_off_kinks(network, 1);
  network.forward(batch.images.data(), batch.training());
  network.backward();
  network.synchronize();
}

/// Operations share a workspace. What only those of another layout have needed is given back when
/// the layout is chosen, and the others compute as before.
TEST_P(GpuMemory, OfALayoutThatIsNotTakenIsGivenBack) {
  const TemporaryFolder folder;
  ::setenv("DUPLEX_CACHE", folder.path().c_str(), 1);
  const auto device = make_cuda_device({0, Precision::float32, true});
  { const Network large(test::all_kinds(), *device, 64); }
  const std::size_t before = device->allocated_bytes();
  device->choose_channels_last(false);
  EXPECT_LT(device->allocated_bytes(), before);
  Network kept(test::all_kinds(), *device, 2);
  device->choose_channels_last(false);
  const auto other = make_cuda_device();  // It takes the same engines (DUPLEX_CACHE).
  Network same(test::all_kinds(), *other, 2);
  EXPECT_EQ(device->allocated_bytes(), other->allocated_bytes());
  train(kept, 2);
  train(same, 2);
  EXPECT_EQ(kept.loss(), same.loss());
  ::unsetenv("DUPLEX_CACHE");
}

/// These are the weights of a linear layer on such an x, in a device's layout.
class LargeWeights {
 public:
  static constexpr std::int64_t inputs = 16 * 16 * 16, outputs = 1500;

  explicit LargeWeights(bool channels_last)
      : device(make_cuda_device({0, Precision::float32, channels_last})) {
    ConvSpec before;
    before.filters = 16;
    before.window = {1, 1, 1, 1, {}};
    conv_ = device->conv(before, plain_desc({1, 3, 16, 16}));
    LinearSpec spec;
    spec.outputs = outputs;
    spec.bias = false;
    linear_ = device->linear(spec, conv_->y);
    memory_ = device->allocate(linear_->weights.bytes);
    weights = {linear_->weights, static_cast<float*>(memory_.data())};
  }

  std::vector<float> product(const std::vector<float>& x) {
    const Buffer from = device->allocate(linear_->x.bytes), to = device->allocate(linear_->y.bytes);
    Tensor in{linear_->x, static_cast<float*>(from.data())};
    Tensor out{linear_->y, static_cast<float*>(to.data())};
    device->upload(in, x.data());
    linear_->forward(out, in, weights, {});
    std::vector<float> y(static_cast<std::size_t>(outputs));
    device->download(y.data(), out);
    return y;
  }

  const std::unique_ptr<Device> device;
  Tensor weights;

 private:
  std::unique_ptr<Conv> conv_;
  std::unique_ptr<Linear> linear_;
  Buffer memory_;
};

/// They are not plain in NHWC, and 24 MB large. A copy needs memory for a piece of 16 MiB.
TEST_P(GpuMemory, LargeWeightsAreCopiedInPieces) {
  const auto random = [](std::uint64_t number, std::int64_t count) {
    std::vector<float> values(static_cast<std::size_t>(count));
    RandomStream(number, 1).fill_uniform(values.data(), values.size());
    return values;
  };
  const auto values = random(1, LargeWeights::inputs * LargeWeights::outputs);
  LargeWeights large(true);
  Device& device = *large.device;
  ASSERT_FALSE(large.weights.desc.plain());
  const std::size_t before = device.allocated_bytes();
  device.upload(large.weights, values.data());
  std::vector<float> back(values.size());
  device.download(back.data(), large.weights);
  EXPECT_TRUE(back == values);
  device.fill(large.weights, 0.0F);
  device.synchronize();  // Uploads have a stream of their own.
  device.start_upload(large.weights, values.data());
  std::fill(back.begin(), back.end(), 0.0F);
  device.start_download(back.data(), large.weights)->wait();
  EXPECT_TRUE(back == values);
  EXPECT_LE(device.allocated_bytes() - before, 3 * (std::size_t{16} << 20));

  LargeWeights plain(false);
  ASSERT_TRUE(plain.weights.desc.plain());
  plain.device->upload(plain.weights, values.data());
  const auto x = random(2, LargeWeights::inputs);
  const auto y = large.product(x), expected = plain.product(x);
  for (std::size_t i = 0; i < y.size(); ++i) EXPECT_NEAR(y[i], expected[i], 1e-3 * expected[i]);
}

INSTANTIATE_TEST_SUITE_P(Gpu, GpuMemory,
                         ::testing::ValuesIn(has_cuda_device() ? std::vector<std::string>{"cuda"}
                                                               : std::vector<std::string>{}),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace duplex
