// Tests how much a GPU rounds where it is allowed to: the gradients of a whole network differ from
// the reference's as much as the precision says, and no more.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <ostream>

#include "tests/layers/devices.h"
#include "tests/layers/small_networks.h"

namespace duplex {
namespace {

using test::Batch;

constexpr std::int64_t batch_size = 4;
constexpr std::uint64_t seed = 11;

/// Says how far the loss and the gradients may be off, relative to the loss and to the gradients'
/// norms: `half` is for half of the parameters, `worst` for the worst one. If the worst one is off
/// by less than `worst_at_least`, nothing has been rounded (0 for tf32, where the fastest engine
/// may be one that does not round). Behind ReLUs and max pooling, an element that rounds to the
/// other side of a kink is off by all of its gradient.
struct Case {
  GpuOptions options;
  double loss, half, worst, worst_at_least;

  friend std::ostream& operator<<(std::ostream& out, const Case& c) {
    return out << name_of(c.options.precision) << (c.options.channels_last ? "_nhwc" : "_nchw");
  }
};

std::vector<Case> cases() {
  std::vector<Case> all;
  if (!has_cuda_device()) return all;
  for (const bool channels_last : {false, true}) {
    all.push_back({{0, Precision::float32, channels_last}, 1e-6, 2e-5, 1e-4, 0.0});
    all.push_back({{0, Precision::tf32, channels_last}, 0.005, 0.01, 0.1, 0.0});
    all.push_back({{0, Precision::bf16, channels_last}, 0.02, 0.1, 0.7, 2e-3});
  }
  return all;
}

double norm_of_difference(const std::vector<float>& a, const std::vector<float>& b) {
  double sum = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += std::pow(double{a[i]} - double{b[i]}, 2.0);
  return std::sqrt(sum);
}

class GpuPrecision : public ::testing::TestWithParam<Case> {};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(GpuPrecision);

TEST_P(GpuPrecision, RoundsAsMuchAsItSays) {
  const auto reference = test::backend("reference");
  const auto device = make_cuda_device(GetParam().options);
  Network fast(test::all_kinds(), *device, batch_size);
  Network slow(test::all_kinds(), *reference, batch_size);
  const Batch batch(fast.model(), batch_size);
  for (Network* network : {&fast, &slow}) {
    test::initialise_off_kinks(*network, seed);
    network->forward(batch.images.data(), batch.training());
    network->backward();
  }
  EXPECT_NEAR(fast.loss(), slow.loss(), GetParam().loss * slow.loss());
  const auto actual = test::gradients_of(fast), expected = test::gradients_of(slow);
  std::vector<double> off;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const std::vector<float> none(expected[i].size());
    off.push_back(norm_of_difference(actual[i], expected[i]) /
                  norm_of_difference(expected[i], none));
    EXPECT_LE(off.back(), GetParam().worst) << fast.parameters()[i].name;
  }
  std::sort(off.begin(), off.end());
  EXPECT_LE(off[off.size() / 2], GetParam().half);
  EXPECT_GE(off.back(), GetParam().worst_at_least);
}

/// It takes more than half, since the images stay float32.
TEST_P(GpuPrecision, Bf16TakesLittleMoreThanHalfTheMemory) {
  constexpr std::int64_t many = 64;
  const auto one = make_cuda_device(GetParam().options);
  const auto strict = make_cuda_device({0, Precision::float32, GetParam().options.channels_last});
  const auto arena = [](Device& device) {
    return static_cast<double>(Network(test::all_kinds(), device, many).arena_bytes());
  };
  const double share = arena(*one) / arena(*strict);
  if (GetParam().options.precision == Precision::bf16) {
    EXPECT_LT(share, 0.65);
  } else {
    EXPECT_EQ(share, 1.0);
  }
}

INSTANTIATE_TEST_SUITE_P(Gpu, GpuPrecision, ::testing::ValuesIn(cases()),
                         ::testing::PrintToStringParamName());

}  // namespace
}  // namespace duplex
