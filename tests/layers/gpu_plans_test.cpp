// Tests that a GPU's plans are made side by side, and that what is chosen, said and remembered does
// not depend on it.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/error.h"
#include "tests/layers/small_networks.h"
#include "tests/layers/stand_in_counts.h"
#include "tests/layers/variable.h"
#include "tests/temporary_folder.h"

namespace duplex {
namespace {

using test::counts;
using test::Variable;

constexpr int several = 4;

std::unique_ptr<Device> device_of(int threads) {
  GpuOptions options;
  options.threads = threads;
  return make_cuda_device(options);
}

/// Returns convolutions that differ, the last of which is padded unevenly.
std::vector<ConvOn> convolutions() {
  std::vector<ConvOn> all;
  for (const std::int64_t filters : {2, 3, 4, 5}) {
    ConvSpec spec;
    spec.filters = filters;
    spec.relu = true;
    spec.window = {3, 3, 1, 1, {1, 1, 1, 1}};
    all.push_back({spec, {2, 3, 6, 6}});
  }
  all.back().spec.window.padding = {0, 0, 1, 1};
  return all;
}

/// Graphs of the convolutions above: forward with and without bias and ReLU, both gradients, and
/// these in a frame where padding is uneven. The stand-in has no proposals for uneven padding.
constexpr long graphs = 4 * 4;

void make(Device& device, const std::vector<ConvOn>& convs) {
  for (const auto& [spec, x] : convs) EXPECT_NE(device.conv(spec, plain_desc(x)), nullptr);
}

class GpuPlans : public ::testing::TestWithParam<std::string> {};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(GpuPlans);

TEST_P(GpuPlans, AreMadeSideBySideByHandlesThatNobodyShares) {
  const Variable no_cache("DUPLEX_CACHE", "off"), meets("STAND_IN_MEETS", std::to_string(several));
  const auto device = device_of(several);
  const test::Counts before = counts();
  device->announce(convolutions());
  const test::Counts announced = counts();
  EXPECT_GE(announced.plans_at_once, several);
  EXPECT_GE(announced.plans - before.plans, graphs);
  EXPECT_EQ(announced.kernels, before.kernels) << "engines were timed meanwhile";
  make(*device, convolutions());
  EXPECT_EQ(counts().plans, announced.plans) << "plans were made that had been made";
  EXPECT_GT(counts().kernels, announced.kernels);
  EXPECT_EQ(counts().shared_handles, before.shared_handles);
}

TEST_P(GpuPlans, AreMadeOnceForEqualGraphs) {
  const Variable no_cache("DUPLEX_CACHE", "off");
  const auto device = device_of(several);
  std::vector<ConvOn> twice = convolutions();
  device->announce(twice);
  const long first = counts().plans;
  make(*device, twice);
  device->announce(twice);
  EXPECT_EQ(counts().plans, first) << "plans were made that had been chosen from";
  const auto other = device_of(several);
  const long before = counts().plans;
  for (const ConvOn& again : convolutions()) twice.push_back(again);
  other->announce(twice);
  const auto third = device_of(1);
  const long once = counts().plans - before;
  third->announce(convolutions());
  EXPECT_EQ(counts().plans - before, 2 * once);
}

/// Returns the lines of the one file of choices in a folder: engines, and the times they took.
std::vector<std::string> remembered(const std::string& folder) {
  std::vector<std::string> lines;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".txt") continue;
    std::ifstream file(entry.path());
    for (std::string line; std::getline(file, line);) lines.push_back(line);
  }
  return lines;
}

/// The making of a network leaves this behind.
struct Outcome {
  std::string said;  ///< On standard error.
  long kernels = 0, plans = 0;
  std::vector<std::string> choices;
};

/// Makes a network on a device of its own, which finds the choices in a folder and leaves its own
/// there.
Outcome made_by(int threads, const std::string& folder) {
  const Variable cache("DUPLEX_CACHE", folder);
  const auto device = device_of(threads);
  const test::Counts before = counts();
  ::testing::internal::CaptureStderr();
  const Network network(test::all_kinds(), *device, 2);
  const std::string said = ::testing::internal::GetCapturedStderr();
  return {said, counts().kernels - before.kernels, counts().plans - before.plans,
          remembered(folder)};
}

/// The stand-in has times of its own (tests/stand_in/clock.h), so that everything is the same.
TEST_P(GpuPlans, DoNotDependOnTheNumberOfThreads) {
  std::optional<Outcome> first, again;
  for (const int threads : {1, 2, several, 0}) {
    const TemporaryFolder folder;
    const Outcome timed = made_by(threads, folder.path());
    const Outcome found = made_by(threads, folder.path());
    if (!first) first = timed, again = found;
    EXPECT_GT(timed.choices.size(), 20U);
    EXPECT_NE(timed.said.find("computes a wrong"), std::string::npos) << timed.said;
    EXPECT_LT(found.kernels, timed.kernels);
    for (const auto& [one, other] : {std::pair(timed, *first), std::pair(found, *again)}) {
      EXPECT_EQ(one.choices, other.choices) << threads << " threads";
      EXPECT_EQ(one.said, other.said) << threads << " threads";
      EXPECT_EQ(one.kernels, other.kernels) << threads << " threads";
      EXPECT_EQ(one.plans, other.plans) << threads << " threads";
    }
  }
}

/// The engines that were chosen before are made side by side, too, and nothing else is.
TEST_P(GpuPlans, OfEnginesThatAreRememberedAreMadeAhead) {
  const TemporaryFolder folder;
  const Variable cache("DUPLEX_CACHE", folder.path());
  make(*device_of(1), convolutions());
  const std::vector<std::string> choices = remembered(folder.path());
  ASSERT_EQ(choices.size(), static_cast<std::size_t>(graphs));
  const auto device = device_of(several);
  const test::Counts before = counts();
  device->announce(convolutions());
  EXPECT_EQ(counts().plans - before.plans, graphs);
  make(*device, convolutions());
  EXPECT_EQ(counts().plans - before.plans, graphs);
  EXPECT_EQ(remembered(folder.path()), choices);
}

/// An error of the preparation is thrown by the convolution that needs it, as it is without.
TEST_P(GpuPlans, ThatCannotBeMadeFailTheirConvolution) {
  const Variable no_cache("DUPLEX_CACHE", "off");
  const auto error_of = [](Device& device) -> std::string {
    try {
      make(device, convolutions());
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  const auto device = device_of(several), other = device_of(several);
  std::string expected, message;
  {
    const Variable none("STAND_IN_PROPOSES_NOT", "1");
    expected = error_of(*other);
    device->announce(convolutions());
  }
  EXPECT_NE(expected, "");
  EXPECT_EQ(error_of(*device), expected);
  std::vector<ConvOn> wrong = convolutions();
  wrong[1].spec.groups = 2;  // They do not divide three channels.
  device->announce(wrong);
  EXPECT_EQ(error_of(*device), "");
}

INSTANTIATE_TEST_SUITE_P(StandIn, GpuPlans, ::testing::ValuesIn(test::stand_ins()),
                         [](const auto&) { return "cuda"; });

}  // namespace
}  // namespace duplex
