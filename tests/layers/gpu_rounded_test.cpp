// Tests that operations in bf16 see every change of their weights: a network whose device keeps
// them rounded computes what one computes that rounds them whenever it reads them.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "layers/checkpoint.h"
#include "layers/exchange/averaging_exchange.h"
#include "layers/exchange/host_staging.h"
#include "layers/exchange/local_exchange.h"
#include "tests/layers/devices.h"
#include "tests/layers/remembering_device.h"
#include "tests/layers/small_networks.h"
#include "tests/layers/train_step.h"
#include "tests/temporary_folder.h"

namespace duplex {
namespace {

constexpr std::int64_t batch_size = 4;

/// Its weights are plain and not, with a bias that a convolution adds and one that is added apart.
Model model() {
  Model net("Rounded", {1, 3, 6, 6});
  Model::Node x = net.conv("conv1", net.input(), 8, same(3));
  x = net.batch_norm("bn", x, true);
  x = net.conv("conv2", x, 8, same(3), {1, true, true});
  x = net.linear("fc1", x, 12, true);
  net.softmax("softmax", net.linear("fc2", x, 4, false));
  return net;
}

/// The wire of a rank whose weights all are others in each step.
class Drawing final : public Exchange {
 public:
  explicit Drawing(HostParameters& host) : host_(host) {}
  void begin(std::uint64_t step) override { step_ = step; }
  void await(std::size_t p) override {
    const Span& span = host_.spans()[p];
    RandomStream(step_ + 100, p).fill_uniform(span.weights, span.count);
    for (std::size_t i = 0; i < span.count; ++i) span.weights[i] = 0.4F * (span.weights[i] - 0.5F);
  }
  void push(std::size_t) override {}
  void end() override {}

 private:
  HostParameters& host_;
  std::uint64_t step_ = 0;
};

/// A network, and one that has the same weights but rounds them at each use, since its device
/// passes no keep_rounded() on.
class GpuRounded : public ::testing::TestWithParam<bool> {
 protected:
  GpuRounded()
      : device_(make_cuda_device({0, Precision::bf16, GetParam()})),
        rounding_(*device_),
        kept_(model(), *device_, batch_size),
        rounded_(model(), rounding_, batch_size),
        batch_(kept_.model(), batch_size) {
    for (Network* network : {&kept_, &rounded_}) test::initialise_off_kinks(*network, 1);
    compare("initialise");
  }

  /// Changes both networks' weights, which must show in what they compute, and be the same in both.
  void both(const std::string& way, const std::function<void(Network&)>& change) {
    const std::vector<float> before = outputs_;
    change(kept_);
    change(rounded_);
    compare(way);
    EXPECT_NE(outputs_, before) << way;
  }

  void step(Network& network, Exchange& exchange, std::uint64_t number) {
    exchange.begin(number);
    test::forward_and_backward(network, batch_.images.data(), batch_.training(), exchange);
    network.synchronize();
    exchange.end();
  }

 private:
  void compare(const std::string& way) {
    std::vector<std::vector<float>> outputs(2, std::vector<float>(batch_size * 4));
    std::vector<std::vector<std::vector<float>>> gradients;
    for (Network* network : {&kept_, &rounded_}) {
      network->forward(batch_.images.data(), batch_.training());
      network->backward();
      network->logits(outputs[gradients.size()].data());
      gradients.push_back(test::gradients_of(*network));
    }
    EXPECT_EQ(outputs[0], outputs[1]) << way;
    EXPECT_EQ(gradients[0], gradients[1]) << way;
    outputs_ = outputs[0];
  }

  std::unique_ptr<Device> device_;
  test::RememberingDevice rounding_;
  Network kept_, rounded_;
  test::Batch batch_;
  std::vector<float> outputs_;
};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(GpuRounded);

TEST_P(GpuRounded, FollowsWhatTheDeviceWrites) {
  for (const std::size_t p : {0U, 4U, 6U, 8U}) {
    both("upload", [p](Network& network) {
      Parameter& parameter = network.parameters()[p];
      std::vector<float> values(static_cast<std::size_t>(parameter.spec.shape.elements()));
      RandomStream(2, p).fill_uniform(values.data(), values.size());
      for (float& value : values) value = 0.3F * (value - 0.5F);
      network.device().upload(parameter.weights, values.data());
    });
  }
  both("accumulate", [](Network& network) {
    Tensor weights = network.weights();
    network.device().accumulate(weights, network.gradients());
  });
  both("convert", [](Network& network) {
    std::vector<Parameter>& all = network.parameters();
    const std::size_t conv2 = 4;
    ASSERT_EQ(all[conv2].name, "conv2.weight");
    network.device().convert(all[conv2].weights, all[conv2].gradient);
  });
  both("fill", [](Network& network) {
    network.device().fill(network.parameters().back().weights, 0.25F);
    network.device().fill(network.parameters()[0].weights, 0.125F);
  });
}

TEST_P(GpuRounded, FollowsUpdates) {
  for (const OptimiserKind kind : {OptimiserKind::sgd, OptimiserKind::adam}) {
    for (const Updates updates : {Updates::each, Updates::together}) {
      both("update", [&](Network& network) {
        OptimiserSpec optimiser;
        optimiser.kind = kind;
        optimiser.momentum = 0.9F;
        LearningRate rate;
        rate.base = 0.05;
        LocalExchange exchange(network, optimiser, rate, updates);
        step(network, exchange, 0);
        step(network, exchange, 1);
      });
    }
  }
}

TEST_P(GpuRounded, FollowsCheckpoints) {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/weights.safetensors";
  const auto reference = test::backend("reference");
  Network other(model(), *reference, batch_size);
  other.initialise(5);
  save_checkpoint(path, other, {});
  both("load", [&](Network& network) { load_checkpoint(path, network); });
}

/// Weights come while forward runs, into the place of those of the step before.
TEST_P(GpuRounded, FollowsTheWire) {
  for (const bool average : {false, true}) {
    both(average ? "averages" : "weights of owners", [&](Network& network) {
      HostParameters host(network.model(), true);
      host.fill(network.model(), 3, "", [](const ParameterSpec&, const float*) {});
      Drawing wire(host);
      OptimiserSpec optimiser;
      LocalExchange local(network, optimiser, {}, Updates::each);
      HostStaging owners(network, host, wire);
      AveragingExchange averages(network, host, wire, local, 2, 4);
      Exchange& exchange = average ? static_cast<Exchange&>(averages) : owners;
      for (std::uint64_t number = 0; number < 4; ++number) step(network, exchange, number);
      exchange.await_all();
      network.synchronize();  // The weights may be on their way, and `host` is gone behind this.
    });
  }
}

INSTANTIATE_TEST_SUITE_P(Gpu, GpuRounded,
                         ::testing::ValuesIn(has_cuda_device() ? std::vector<bool>{false, true}
                                                               : std::vector<bool>{}),
                         [](const auto& info) { return info.param ? "nhwc" : "nchw"; });

}  // namespace
}  // namespace duplex
