// Tests that an error names the layer in which a GPU broke down, and that a fallback is reported
// only once. The stand-in breaks down when it is told to, a GPU by a wild pointer.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

#include "core/error.h"
#include "tests/layers/devices.h"
#include "tests/layers/small_networks.h"
#include "tests/layers/variable.h"
#include "tests/temporary_folder.h"

namespace duplex {
namespace {

using test::Variable;

constexpr std::int64_t batch_size = 4;

/// Runs a step on a device that breaks down in its kernel number `kernel`. Returns the error's
/// message, or "" if there was no error. If `observed`, the network waits for every layer, and so
/// cannot name the wrong one.
std::string breakdown(int kernel, bool observed) {
  ::setenv("STAND_IN_BREAKS_AT", std::to_string(kernel).c_str(), 1);
  const auto device = make_cuda_device();
  ::unsetenv("STAND_IN_BREAKS_AT");
  try {
    Network network(test::all_kinds(), *device, batch_size);
    const test::Batch batch(network.model(), batch_size);
    test::initialise_off_kinks(network, 1);
    if (observed) network.observe([](std::size_t, Phase, std::int64_t, std::int64_t) {});
    network.forward(batch.images.data(), batch.training());
    network.backward();
    network.synchronize();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

/// Its one parameter is the device's description. Every device times engines anew, as these tests
/// count on, and leaves breadcrumbs.
class GpuErrors : public ::testing::TestWithParam<std::string> {
 protected:
  const Variable cache_{"DUPLEX_CACHE", "off"}, breadcrumbs_{"DUPLEX_BREADCRUMBS", "on"};
};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(GpuErrors);

/// Returns the description of the device, if there is one and it is of the kind asked for.
std::vector<std::string> devices(bool stand_in) {
  if (!has_cuda_device()) return {};
  const std::string description = make_cuda_device()->description();
  if ((description.find("stand-in") != std::string::npos) != stand_in) return {};
  return {description};
}

std::string layer_of(const std::string& message) {
  const std::size_t begin = message.find(", layer ");
  if (begin == std::string::npos) return "none, but: " + message;
  return message.substr(begin + 8, message.find(": ", begin) - begin - 8);
}

TEST_P(GpuErrors, NameTheLayer) {
  // The kernels range from the timing of the first layer's engines to the last gradient. Every run
  // times the engines again, which takes seconds, so that only some kernels are tried.
  int kernel = 1, layers = 0;
  std::string before;
  for (std::string message = "first"; !message.empty(); kernel += 31) {
    message = breakdown(kernel, true);
    if (message.find(", layer ") == std::string::npos) continue;
    const std::string layer = layer_of(message);
    EXPECT_EQ(layer_of(breakdown(kernel, false)), layer) << "in kernel " << kernel;
    EXPECT_NE(message.find("illegal memory access"), std::string::npos) << message;
    layers += layer != before ? 1 : 0;
    before = layer;
  }
  EXPECT_GT(layers, 10);
}

/// Marks cost time, so that a run leaves them only after one that broke down without them.
TEST_P(GpuErrors, TheNextRunNamesTheLayer) {
  const TemporaryFolder folder;
  const Variable cache("DUPLEX_CACHE", folder.path());
  constexpr int never = 1 << 30, late = 60;
  EXPECT_EQ(breakdown(never, false), "");  // All engines have been timed then.
  const std::string named = breakdown(late, false);
  ASSERT_NE(named, "");
  ::unsetenv("DUPLEX_BREADCRUMBS");
  for (int twice = 0; twice < 2; ++twice) {
    EXPECT_EQ(layer_of(breakdown(late, false)), "unknown (the next run on this GPU will tell)");
    EXPECT_EQ(layer_of(breakdown(late, false)), layer_of(named));
  }
  const Variable no_cache("DUPLEX_CACHE", "off");
  EXPECT_EQ(layer_of(breakdown(late, false)), "unknown (DUPLEX_BREADCRUMBS=on tells)");
}

TEST_P(GpuErrors, AGpuWithoutCodeIsRefused) {
  const Variable unfit("STAND_IN_FITS_NOT", "1");
  EXPECT_EQ(cuda_devices(), 0);
  try {
    make_cuda_device();
    ADD_FAILURE() << "it was taken";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what())
                  .find("no code for GPU 0, a stand-in for a GPU, of compute "
                        "capability 9.0"),
              std::string::npos)
        << error.what();
  }
}

/// Both have the same name, libcudnn.so.9.
TEST_P(GpuErrors, CudnnForAnotherCudaIsRefused) {
  const Variable other("STAND_IN_CUDA", "9");
  try {
    make_cuda_device();
    ADD_FAILURE() << "it was taken";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("but finds cuDNN for CUDA 9"), std::string::npos)
        << error.what();
  }
}

/// The stand-in's fastest engine is wrong in every direction.
TEST_P(GpuErrors, WhatFallsBackIsSaidOnce) {
  const auto device = make_cuda_device();
  ::testing::internal::CaptureStderr();
  for (const std::int64_t filters : {4, 5}) {
    ConvSpec spec;
    spec.filters = filters;
    spec.window = {3, 3, 2, 2, {0, 0, 1, 1}};
    device->conv(spec, plain_desc({1, 3, 8, 8}));
  }
  const std::string said = ::testing::internal::GetCapturedStderr();
  for (const char* of :
       {"wrong result of", "wrong gradient of the input of", "wrong gradient of the weights of"}) {
    const std::size_t first = said.find(of);
    EXPECT_NE(first, std::string::npos) << said;
    EXPECT_EQ(said.find(of, first + 1), std::string::npos) << said;
  }
}

/// Returns how many kernels run until a convolution is made. Most of them time its engines.
int kernels_of(Gradients wanted) {
  for (int kernel = 1;; ++kernel) {
    ::setenv("STAND_IN_BREAKS_AT", std::to_string(kernel).c_str(), 1);
    const auto device = make_cuda_device();
    ::unsetenv("STAND_IN_BREAKS_AT");
    try {
      ConvSpec spec;
      spec.filters = 4;
      spec.gradients = wanted;
      device->conv(spec, plain_desc({1, 3, 8, 8}));
      device->synchronize();
      return kernel;
    } catch (const Error&) {
    }
  }
}

TEST_P(GpuErrors, EnginesAreTimedForWhatIsWanted) {
  const int none = kernels_of(Gradients::none), all = kernels_of(Gradients::all);
  EXPECT_GT(none, 1);
  EXPECT_EQ(kernels_of(Gradients::weights) - none, (all - none) / 2);
}

/// Where a device finds the choices of one before it, it only checks each engine's result.
TEST_P(GpuErrors, EnginesAreTimedOnce) {
  const int timed = kernels_of(Gradients::all);
  const TemporaryFolder folder;
  const Variable cache("DUPLEX_CACHE", folder.path());
  ConvSpec spec;
  spec.filters = 4;
  make_cuda_device()->conv(spec, plain_desc({1, 3, 8, 8}));
  const int checked = kernels_of(Gradients::all);
  EXPECT_GT(checked, 1);
  EXPECT_LT(2 * checked, timed);
}

/// Only a real GPU survives a wild pointer. A process of its own breaks it and asks for the layer.
class BrokenGpu : public ::testing::TestWithParam<std::string> {};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(BrokenGpu);

void break_in_conv7() {
  ::setenv("DUPLEX_BREADCRUMBS", "on", 1);
  const auto device = make_cuda_device();
  Tensor wild{plain_desc({1 << 20}), nullptr};
  device->begin_layer("conv6");
  device->synchronize();
  try {
    device->begin_layer("conv7");
    device->fill(wild, 1.0F);
    device->begin_layer("conv8");
    device->synchronize();
  } catch (const Error&) {
    std::fprintf(stderr, "broken in %s", device->broken_in().c_str());
  }
  std::_Exit(0);
}

TEST_P(BrokenGpu, NamesTheLayer) {
  ::testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(break_in_conv7(), ::testing::ExitedWithCode(0), "broken in conv7");
}

INSTANTIATE_TEST_SUITE_P(Gpu, BrokenGpu, ::testing::ValuesIn(devices(false)),
                         [](const auto&) { return "cuda"; });

INSTANTIATE_TEST_SUITE_P(StandIn, GpuErrors, ::testing::ValuesIn(devices(true)),
                         [](const auto&) { return "cuda"; });

}  // namespace
}  // namespace duplex
