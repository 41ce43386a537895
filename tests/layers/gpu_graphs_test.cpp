// Tests a network's phases that a GPU has recorded as CUDA graphs: they compute what the operations
// one by one do, to the bit, with other images, labels and draws in every step.
#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/error.h"
#include "layers/exchange/local_exchange.h"
#include "tests/layers/devices.h"
#include "tests/layers/small_networks.h"
#include "tests/layers/stand_in_counts.h"
#include "tests/layers/variable.h"
#include "tests/temporary_folder.h"

namespace duplex {
namespace {

using test::counts;

constexpr std::int64_t batch_size = 4;

std::unique_ptr<Device> recording_device(Precision precision = Precision::float32,
                                         bool channels_last = false) {
  return make_cuda_device({0, precision, channels_last, 0, true});
}

/// A network that is trained step by step.
class Training {
 public:
  explicit Training(Device& device)
      : network(test::all_kinds(), device, batch_size), exchange_(network, momentum(), rate()) {
    network.initialise(1);
  }

  /// Returns the loss.
  double step(bool keeps_nan = false) {
    const test::Batch batch(network.model(), batch_size, ++steps_);
    ForwardContext context = batch.training();
    context.first_sample = steps_ * static_cast<std::uint64_t>(batch_size);
    exchange_.begin(steps_);
    network.device().keep_nan(keeps_nan);
    network.forward(batch.images.data(), context);
    network.device().keep_nan(false);
    network.backward();
    for (std::size_t p = network.parameters().size(); p-- > 0;) exchange_.push(p);
    exchange_.end();
    return network.loss();
  }
  std::vector<std::vector<float>> state() {
    std::vector<std::vector<float>> values;
    for (const Parameter* each : network.state())
      values.push_back(test::values_of(network.device(), each->weights));
    return values;
  }
  /// From now on it is asked layer by layer, since an observer sees each end.
  void watch() {
    network.observe([](std::size_t, Phase, std::int64_t, std::int64_t) {});
  }

  Network network;

 private:
  static OptimiserSpec momentum() {
    OptimiserSpec optimiser;
    optimiser.momentum = 0.9F;
    return optimiser;
  }
  static LearningRate rate() {
    LearningRate rate;
    rate.base = 0.05;
    return rate;
  }

  LocalExchange exchange_;
  std::uint64_t steps_ = 0;
};

struct Case {
  Precision precision;
  bool channels_last;

  friend std::ostream& operator<<(std::ostream& out, const Case& c) {
    return out << name_of(c.precision) << (c.channels_last ? "_nhwc" : "_nchw");
  }
};

std::vector<Case> cases() {
  if (!has_cuda_device()) return {};
  return {{Precision::float32, false}, {Precision::float32, true}, {Precision::bf16, true}};
}

class GpuGraphs : public ::testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    ASSERT_TRUE(device_->records());
    ::testing::internal::CaptureStderr();
  }
  /// No capture has failed.
  void TearDown() override {
    const std::string said = ::testing::internal::GetCapturedStderr();
    EXPECT_EQ(said.find("without a CUDA graph"), std::string::npos) << said;
  }

  std::unique_ptr<Device> device_ =
      recording_device(GetParam().precision, GetParam().channels_last);
};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(GpuGraphs);

TEST_P(GpuGraphs, TrainAsLayerByLayer) {
  Training recorded(*device_), watched(*device_);
  watched.watch();
  for (int step = 0; step < 6; ++step) {
    // A step that has to keep NaN is asked for one by one, and its backward is recorded still.
    const bool keeps_nan = step == 3;
    EXPECT_EQ(recorded.step(keeps_nan), watched.step(keeps_nan)) << "in step " << step;
  }
  EXPECT_EQ(recorded.state(), watched.state());
}

/// The program keeps NaN whenever it evaluates.
TEST_P(GpuGraphs, EvaluateBetweenSteps) {
  Training recorded(*device_), watched(*device_);
  watched.watch();
  const test::Batch batch(recorded.network.model(), batch_size, 100);
  for (int step = 0; step < 4; ++step) {
    recorded.step();
    watched.step();
    for (const bool labelled : {true, false}) {
      const KeepingNan keeping_nan(*device_);
      std::vector<std::vector<float>> outputs;
      for (Training* each : {&recorded, &watched}) {
        ForwardContext context = batch.evaluation();
        if (!labelled) context.labels = nullptr;
        each->network.forward(batch.images.data(), context);
        outputs.emplace_back(static_cast<std::size_t>(batch_size * 5));
        each->network.outputs(outputs.back().data());
      }
      EXPECT_EQ(outputs[0], outputs[1]) << "after step " << step;
    }
    EXPECT_EQ(recorded.network.loss(), watched.network.loss());
  }
}

TEST_P(GpuGraphs, WrongLabelsAreNamed) {
  Training training(*device_);
  for (int step = 0; step < 3; ++step) training.step();
  test::Batch batch(training.network.model(), batch_size);
  batch.labels[2] = 5;
  try {
    training.network.forward(batch.images.data(), batch.training());
    FAIL() << "there is no class 5";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("layer helper/softmax: loss: sample 2 has label 5"),
              std::string::npos)
        << error.what();
  }
  training.step();
}

INSTANTIATE_TEST_SUITE_P(Gpu, GpuGraphs, ::testing::ValuesIn(cases()),
                         ::testing::PrintToStringParamName());

class StandInGraphs : public ::testing::TestWithParam<std::string> {};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(StandInGraphs);

/// From the third step on, a step is two graphs, and few kernels that are launched one by one: the
/// update, and what puts labels and draws in place.
TEST_P(StandInGraphs, AreTwoCallsAStep) {
  const auto device = recording_device();
  Training training(*device);
  training.step();
  training.step();
  const test::Counts before = counts();
  training.step();
  const test::Counts after = counts();
  EXPECT_EQ(after.graphs - before.graphs, 2);
  EXPECT_LE(after.kernels - before.kernels, 8);
  EXPECT_EQ(after.spinning_waits, before.spinning_waits);
}

/// Another network on the same device moves the memory that all operations share.
TEST_P(StandInGraphs, AreRecordedAnewWhereMemoryHasMoved) {
  const auto device = recording_device(Precision::bf16, true);
  Training training(*device);
  std::unique_ptr<Network> larger;
  const std::vector<long> graphs{0, 2, 2, 0, 2, 2};
  for (std::size_t step = 0; step < graphs.size(); ++step) {
    if (step == 3) larger = std::make_unique<Network>(test::all_kinds(), *device, 40);
    const long before = counts().graphs;
    training.step();
    EXPECT_EQ(counts().graphs - before, graphs[step]) << "in step " << step;
  }
}

/// Nothing is recorded where breadcrumbs are left, since a graph would leave none.
TEST_P(StandInGraphs, AreNotMadeWhereBreadcrumbsAreLeft) {
  const test::Variable breadcrumbs("DUPLEX_BREADCRUMBS", "on");
  const auto device = recording_device();
  EXPECT_FALSE(device->records());
  const long before = counts().graphs;
  Training training(*device);
  for (int step = 0; step < 3; ++step) training.step();
  EXPECT_EQ(counts().graphs, before);
}

/// Work that waits for the device cannot be captured. The device says so, nobody takes it for a GPU
/// that has broken down, and it works on.
TEST_P(StandInGraphs, WorkThatWaitsIsNotRecorded) {
  const TemporaryFolder cache;
  const test::Variable folder("DUPLEX_CACHE", cache.path());
  const auto device = recording_device();
  Training training(*device);
  training.step();
  const auto files = [&] {
    std::set<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(cache.path()))
      names.insert(entry.path().filename());
    return names;
  };
  const auto before = files();
  Tensor tensor = training.network.parameters()[0].weights;
  ::testing::internal::CaptureStderr();
  const auto recording = device->record([&] {
    training.network.named({1}, [&] {
      device->fill(tensor, 3.0F);
      device->synchronize();
    });
  });
  const std::string said = ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(recording, nullptr);
  EXPECT_NE(said.find("without a CUDA graph"), std::string::npos) << said;
  EXPECT_NE(said.find("layer bn0: cuda: waiting for the GPU"), std::string::npos) << said;
  EXPECT_EQ(files(), before) << "the next run was asked for breadcrumbs";
  device->fill(tensor, 2.0F);
  for (const float value : test::values_of(*device, tensor)) ASSERT_EQ(value, 2.0F);
}

/// The kernel that breaks the GPU down is in a graph; the step's end tells.
TEST_P(StandInGraphs, ABreakdownIsToldAtTheEndOfTheStep) {
  const TemporaryFolder cache;
  const test::Variable folder("DUPLEX_CACHE", cache.path());
  long kernels = 0;
  // The first run times engines, and the second counts kernels, of which graphs' count when they
  // are captured.
  for (int run = 0; run < 2; ++run) {
    const long before = counts().kernels;
    const auto device = recording_device();
    Training training(*device);
    for (int step = 0; step < 2; ++step) training.step();
    kernels = counts().kernels - before;
  }
  const auto device = [&] {
    const test::Variable breaks("STAND_IN_BREAKS_AT", std::to_string(kernels + 20));
    return recording_device();
  }();
  Training training(*device);
  for (int step = 0; step < 2; ++step) training.step();
  try {
    training.step();
    ADD_FAILURE() << "the GPU did not break down";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("illegal memory access"), std::string::npos)
        << error.what();
  }
}

INSTANTIATE_TEST_SUITE_P(StandIn, StandInGraphs, ::testing::ValuesIn(test::stand_ins()),
                         [](const auto&) { return std::string("device"); });

}  // namespace
}  // namespace duplex
