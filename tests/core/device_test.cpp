// Tests devices: memory, copies, element-wise work, and how they are named.
#include "core/device.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/gpu/cuda.h"
#include "tests/core/operations/backends.h"
#include "tests/core/operations/fixture.h"
#include "tests/core/operations/values.h"

namespace duplex::test {
namespace {

#if defined(__SANITIZE_ADDRESS__)
constexpr bool address_sanitizer = true;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
constexpr bool address_sanitizer = true;
#else
constexpr bool address_sanitizer = false;
#endif
#else
constexpr bool address_sanitizer = false;
#endif

/// Returns descriptions of every kind that this device makes: plain ones, activations, weights.
std::vector<TensorDesc> descriptions(Device& device) {
  ConvSpec conv;
  conv.filters = 33;
  conv.window = {3, 3, 1, 1, {1, 1, 1, 1}};
  ConvSpec groups = conv;
  groups.filters = 64;
  groups.groups = 2;
  LinearSpec linear;
  linear.outputs = 37;
  const auto first = device.conv(conv, plain_desc({2, 3, 7, 5}));
  const auto second = device.conv(groups, plain_desc({2, 48, 5, 5}));
  const auto third = device.linear(linear, first->y);
  const auto fourth = device.linear(linear, plain_desc({8, 130}));
  return {plain_desc({3, 5}),
          plain_desc({1}),
          plain_desc({2, 3, 4, 5}),
          first->weights,
          first->bias,
          first->y,
          second->weights,
          second->y,
          third->weights,
          third->y,
          fourth->weights,
          fourth->y,
          convolved_desc(device, {2, 16, 3, 3}),
          convolved_desc(device, {1, 1, 2, 2})};
}

using DeviceTest = BackendTest;

TEST_P(DeviceTest, HasANameAndADescription) {
  EXPECT_EQ(device->name(), GetParam().substr(0, GetParam().find('_')));
  EXPECT_FALSE(device->description().empty());
}

TEST_P(DeviceTest, MemoryIsAligned) {
  for (std::size_t bytes : {0, 1, 4, 64, 1000, 5000000}) {
    const Buffer buffer = device->allocate(bytes);
    EXPECT_NE(buffer.data(), nullptr);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buffer.data()) % 64, 0U);
  }
}

TEST_P(DeviceTest, FindsTheOneElementThatIsNotFinite) {
  for (const TensorDesc& desc : descriptions(*device)) {
    SCOPED_TRACE(desc.shape.str());
    Memory memory(*device);
    const Values values = random_values(desc.shape, 1, -1e30F, 1e30F);
    const Tensor sound = memory.holding(desc, values);
    EXPECT_TRUE(device->finite({}));
    EXPECT_TRUE(device->finite({sound, sound}));
    constexpr float infinity = std::numeric_limits<float>::infinity();
    for (const float bad : {infinity, -infinity, std::numeric_limits<float>::quiet_NaN()}) {
      for (const std::size_t at : {std::size_t{0}, values.size() / 2, values.size() - 1}) {
        Values spoilt = values;
        spoilt[at] = bad;
        EXPECT_FALSE(device->finite({sound, memory.holding(desc, spoilt)})) << bad << " at " << at;
      }
    }
  }
}

/// Copies run beside the operations, from memory that is pinned and from memory that is not.
TEST_P(DeviceTest, StartedCopiesBringWhatOperationsSee) {
  for (const bool pinned : {false, true}) {
    for (const TensorDesc& desc : descriptions(*device)) {
      SCOPED_TRACE(desc.shape.str());
      Memory memory(*device);
      Values first = random_values(desc.shape, 1), second = random_values(desc.shape, 2);
      Values read(first.size());
      const std::size_t bytes = first.size() * sizeof(float);
      std::vector<std::shared_ptr<void>> pins;
      if (pinned) {
        for (Values* values : {&first, &second, &read})
          pins.push_back(device->pin(values->data(), bytes));
      }
      Tensor from = memory.holding(desc, first), to = memory.poisoned(desc);
      device->synchronize();
      device->start_upload(to, second.data());
      device->accumulate(to, from);
      const auto copy = device->start_download(read.data(), to);
      if (copy) copy->wait();
      for (std::size_t i = 0; i < read.size(); ++i) ASSERT_EQ(read[i], second[i] + first[i]);
      device->synchronize();
      EXPECT_GE(device->copy_waits().weights, 0.0);
    }
  }
}

TEST_P(DeviceTest, AnUploadTakesWhatWasPrefetched) {
  const Shape shape{2, 3, 16, 16};
  for (const TensorDesc& desc : {plain_desc(shape), convolved_desc(*device, shape)}) {
    Memory memory(*device);
    Values values = random_values(shape, 1), other = random_values(shape, 2);
    const Values kept = values;
    Tensor tensor = memory.poisoned(desc);
    for (int round = 0; round < 2; ++round) {  // The second reuses the memory of the first.
      const auto copy = device->prefetch(values.data(), values.size() * sizeof(float));
      if (copy) {
        copy->wait();
        std::fill(values.begin(), values.end(), 7.0F);  // The copy has them already.
      }
      device->upload(tensor, other.data());
      EXPECT_EQ(memory.read(tensor), other);
      device->upload(tensor, values.data());
      EXPECT_EQ(memory.read(tensor), kept);
      values = kept;
    }
    // A copy that nobody holds any more is not used: the memory may have other values by now.
    device->prefetch(other.data(), other.size() * sizeof(float)).reset();
    std::fill(other.begin(), other.end(), 7.0F);
    device->upload(tensor, other.data());
    EXPECT_EQ(memory.read(tensor), other);
    device->synchronize();
    EXPECT_GE(device->copy_waits().input, 0.0);
  }
}

TEST_P(DeviceTest, WhatIsPrefetchedDoesNotWaitForOperations) {
  Memory memory(*device);
  const Values values = random_values({1 << 20}, 1);
  const auto prefetch = [&] {
    return device->prefetch(values.data(), values.size() * sizeof(float));
  };
  const auto before = prefetch();
  if (!before) return;  // Operations are done when they return.
  // An operation on so many elements takes a GPU far longer than the host takes to launch it.
  const Shape shape{1 << 24};
  Tensor taken = memory.poisoned(plain_desc(shape)), sum = memory.poisoned(plain_desc(shape));
  const auto seconds_of = [](const auto& work) {
    const auto begin = std::chrono::steady_clock::now();
    work();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  };
  device->synchronize();
  const double one = seconds_of([&] {
    device->accumulate(sum, taken);
    device->synchronize();
  });
  const int many = static_cast<int>(std::min(std::max(0.2 / one, 4.0), 500.0));
  double copied = 0.0;
  const double all = seconds_of([&] {
    copied = seconds_of([&] {
      for (int i = 0; i < many; ++i) device->accumulate(sum, taken);
      prefetch()->wait();
    });
    device->synchronize();
  });
  EXPECT_LT(copied, all / 2);
}

TEST_P(DeviceTest, SaysWhenThereIsNoMemory) {
  if (address_sanitizer) GTEST_SKIP() << "AddressSanitizer ends the program on such a request";
  EXPECT_THROW(device->allocate(std::size_t{1} << 60), Error);
}

TEST_P(DeviceTest, CopiesGoThereAndBack) {
  Memory memory(*device);
  for (const TensorDesc& desc : descriptions(*device)) {
    SCOPED_TRACE(desc.shape.str());
    const Values values = random_values(desc.shape, 1);
    EXPECT_EQ(memory.read(memory.holding(desc, values)), values);
  }
}

TEST_P(DeviceTest, ConvertsBetweenLayouts) {
  Memory memory(*device);
  for (const TensorDesc& desc : descriptions(*device)) {
    SCOPED_TRACE(desc.shape.str());
    const Values values = random_values(desc.shape, 1);
    const Tensor from = memory.holding(desc, values);
    Tensor plain = memory.poisoned(plain_desc(desc.shape)), back = memory.poisoned(desc);
    device->convert(plain, from);
    EXPECT_EQ(memory.read(plain), values);
    device->convert(back, plain);
    EXPECT_EQ(memory.read(back), values);
  }
}

TEST_P(DeviceTest, Fills) {
  Memory memory(*device);
  for (const TensorDesc& desc : descriptions(*device)) {
    SCOPED_TRACE(desc.shape.str());
    Tensor tensor = memory.poisoned(desc);
    for (float value : {0.0F, 1.5F}) {
      device->fill(tensor, value);
      EXPECT_EQ(memory.read(tensor), Values(memory.read(tensor).size(), value));
    }
  }
}

TEST_P(DeviceTest, Accumulates) {
  Memory memory(*device);
  for (const TensorDesc& desc : descriptions(*device)) {
    SCOPED_TRACE(desc.shape.str());
    const Values a = random_values(desc.shape, 1), b = random_values(desc.shape, 2);
    Tensor to = memory.holding(desc, a);
    device->accumulate(to, memory.holding(desc, b));
    Values sum(a.size());
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] = a[i] + b[i];
    EXPECT_EQ(memory.read(to), sum);
  }
}

std::vector<OptimiserSpec> optimisers() {
  OptimiserSpec plain, decay, momentum, nesterov, adam;
  decay.weight_decay = 5e-4F;
  momentum.momentum = 0.9F;
  momentum.weight_decay = 1e-3F;
  nesterov.momentum = 0.8F;
  nesterov.nesterov = true;
  adam.kind = OptimiserKind::adam;
  adam.weight_decay = 1e-3F;
  return {plain, decay, momentum, nesterov, adam};
}

// A device's update gives the same bits as core/optimiser.h, whatever the layout, step by step.
TEST_P(DeviceTest, UpdatesAsTheOptimiserDoes) {
  for (const TensorDesc& desc : descriptions(*device)) {
    for (const OptimiserSpec& spec : optimisers()) {
      SCOPED_TRACE(desc.shape.str());
      Memory memory(*device);
      Values weights = random_values(desc.shape, 1);
      Tensor tensor = memory.holding(desc, weights);
      std::vector<Values> spans(static_cast<std::size_t>(spec.states()),
                                Values(weights.size(), 0.0F));
      std::vector<float*> state;
      std::vector<Tensor> state_tensors;
      for (Values& span : spans) {
        state.push_back(span.data());
        state_tensors.push_back(memory.holding(desc, span));
      }
      for (std::uint64_t number = 1; number <= 3; ++number) {
        const OptimiserStep step = {spec, 0.05F, number};
        const Values gradient = random_values(desc.shape, 10 + number);
        update(step, weights.size(), weights.data(), gradient.data(), state.data());
        device->update(step, tensor, memory.holding(desc, gradient), state_tensors);
        EXPECT_EQ(memory.read(tensor), weights);
      }
      for (std::size_t i = 0; i < spans.size(); ++i) {
        EXPECT_EQ(memory.read(state_tensors[i]), spans[i]);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Backends, DeviceTest, ::testing::ValuesIn(backends()), backend_label);

TEST(MakeDevice, MakesWhatItNames) {
  for (const std::string& name : device_names()) {
    if (name.rfind("cuda", 0) == 0) continue;  // Needs a GPU.
    EXPECT_NE(make_device(name, 0), nullptr) << name;
  }
  EXPECT_EQ(make_device("reference", 0)->name(), "reference");
  const bool fast = make_backend("onednn") != nullptr;
  EXPECT_EQ(make_device("cpu", 1)->name(), fast ? "onednn" : "reference");
  EXPECT_EQ(make_device("auto", 1)->name(), fast ? "onednn" : "reference");
}

TEST(MakeDevice, TakesGpusByNumber) {
  for (const char* name : {"cuda:", "cuda:x", "cuda:-1", "cuda:1x", "cuda:99999999999"}) {
    try {
      make_device(name, 0);
      ADD_FAILURE() << name;
    } catch (const Error& error) {
      EXPECT_EQ(error.code, Exit::usage);
      EXPECT_NE(std::string(error.what()).find(name), std::string::npos) << error.what();
    }
  }
  try {
    make_device("cuda:4095", 0);
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(std::string(error.what()).rfind("cuda: ", 0), 0U) << error.what();
  }
}

TEST(MakeDevice, RunsEveryTestOnAGpu) {
  if (!has_cuda_device()) GTEST_SKIP() << "there is no GPU here: no test of the backend cudnn ran";
  EXPECT_EQ(make_device("cuda", 0)->name(), "cudnn");
}

TEST(MakeDevice, UnknownNamesAreAnsweredWithTheKnown) {
  try {
    make_device("abacus", 0);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code, Exit::usage);
    const std::string message = error.what();
    EXPECT_NE(message.find("'abacus'"), std::string::npos) << message;
    for (const std::string& name : device_names()) {
      EXPECT_NE(message.find(name), std::string::npos) << message;
    }
  }
}

// A device takes as many threads as the process may use cores, not as many as the machine has.
TEST(MakeDevice, ThreadsFollowTheAffinity) {
  if (make_backend("onednn") == nullptr) GTEST_SKIP() << "onednn is not built in";
  cpu_set_t before;
  ASSERT_EQ(sched_getaffinity(0, sizeof before, &before), 0);
  int first = 0;
  while (!CPU_ISSET(first, &before)) ++first;
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(first, &one);
  ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
  const std::string description = make_device("cpu", 0)->description();
  ASSERT_EQ(sched_setaffinity(0, sizeof before, &before), 0);
  EXPECT_EQ(description, make_device("cpu", 1)->description());
  EXPECT_EQ(make_device("cpu", 0)->description(),
            make_device("cpu", CPU_COUNT(&before))->description());
  EXPECT_NE(description, make_device("cpu", 2)->description());
}

TEST(MakeDevice, RefusesNegativeThreads) {
  EXPECT_THROW(make_device("auto", -1), Error);
}

}  // namespace
}  // namespace duplex::test
