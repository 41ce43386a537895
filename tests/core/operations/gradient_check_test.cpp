// Tests the checker itself: it must catch what is wrong.
#include "tests/core/operations/gradient_check.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "tests/core/operations/ops.h"
#include "tests/core/operations/values.h"

namespace duplex::test {
namespace {

ConvSpec small_conv() {
  ConvSpec spec;
  spec.filters = 3;
  spec.window = {3, 3, 1, 1, {1, 1, 1, 1}};
  return spec;
}

/// Returns the reference's convolution, with `spoil` done to its gradients (x, weights, bias).
OpUnderTest spoilt_conv(Device& device, const std::function<void(std::vector<Tensor>&)>& spoil) {
  OpUnderTest op = on_plain(device, {{2, 2, 4, 4}}, conv_op(small_conv()));
  const auto backward = op.backward;
  op.backward = [=](std::vector<Tensor>& gradients, const Tensor& dy,
                    const std::vector<Tensor>& inputs, const Tensor& y) {
    backward(gradients, dy, inputs, y);
    spoil(gradients);
  };
  return op;
}

::testing::AssertionResult check(const std::function<void(std::vector<Tensor>&)>& spoil) {
  const auto device = make_backend("reference");
  Fixture fixture(*device, spoilt_conv(*device, spoil));
  return gradients_agree(fixture, random_inputs(fixture.op(), 5), conv_tolerance);
}

TEST(GradientCheck, PassesWhatIsRight) {
  EXPECT_TRUE(check([](std::vector<Tensor>&) {}));
}

TEST(GradientCheck, CatchesOneWrongElement) {
  for (std::size_t input : {0, 1, 2}) {
    const auto result =
        check([=](std::vector<Tensor>& gradients) { gradients[input].data[1] *= 1.01F; });
    EXPECT_FALSE(result) << "input " << input;
  }
}

TEST(GradientCheck, CatchesASwappedIndex) {
  EXPECT_FALSE(check([](std::vector<Tensor>& gradients) {
    std::swap(gradients[1].data[3], gradients[1].data[4]);
  }));
}

TEST(GradientCheck, CatchesASign) {
  EXPECT_FALSE(check([](std::vector<Tensor>& gradients) {
    for (std::int64_t i = 0; i < gradients[0].stored(); ++i) gradients[0].data[i] *= -1.0F;
  }));
}

TEST(GradientCheck, CatchesWhatIsNotWritten) {
  EXPECT_FALSE(check([](std::vector<Tensor>& gradients) {
    gradients[2].data[0] = std::numeric_limits<float>::quiet_NaN();
  }));
  EXPECT_FALSE(check([](std::vector<Tensor>& gradients) {
    for (std::int64_t i = 0; i < gradients[0].stored(); ++i) gradients[0].data[i] = 0.0F;
  }));
}

TEST(GradientCheck, SaysWhereAndBothValues) {
  const auto device = make_backend("reference");
  Values values = {1, 2};
  const auto result = gradients_agree([&] { return double{values[0]} * double{values[1]}; },
                                      {{"factors", &values, {2, 1.5F}}}, conv_tolerance);
  ASSERT_FALSE(result);
  EXPECT_STREQ(result.message(), "\n  factors[1]: gradient 1.5, derivative 1");
  EXPECT_EQ(values, (Values{1, 2}));  // The check leaves the values as they were.
}

// This backward pass forgets ReLU's mask.
TEST(GradientCheck, CatchesAMissingMask) {
  const auto device = make_backend("reference");
  OpUnderTest unmasked = on_plain(*device, {{2, 3, 3, 3}}, activation_op(ActivationKind::relu));
  unmasked.backward = [&](std::vector<Tensor>& gradients, const Tensor& dy,
                          const std::vector<Tensor>&,
                          const Tensor&) { device->convert(gradients[0], dy); };
  Fixture fixture(*device, unmasked);
  EXPECT_FALSE(gradients_agree(fixture, {separated_values({2, 3, 3, 3}, 5, 0.1F)}, relu_tolerance));
}

// Two fixtures are told apart that differ in the last digits of one weight's gradient.
TEST(SameResults, CatchesASmallDifference) {
  const auto device = make_backend("reference");
  const auto make = [&] { return on_plain(*device, {{2, 2, 4, 4}}, conv_op(small_conv())); };
  Fixture expected(*device, make()), same(*device, make());
  const std::vector<Values> inputs = random_inputs(expected.op(), 1);
  EXPECT_TRUE(same_results(same, expected, inputs, conv_tolerance));
  Fixture spoilt(*device, spoilt_conv(*device, [](std::vector<Tensor>& gradients) {
    gradients[1].data[2] *= 1.001F;
  }));
  const auto result = same_results(spoilt, expected, inputs, conv_tolerance);
  EXPECT_FALSE(result);
  EXPECT_NE(std::string(result.message()).find("gradient of weights"), std::string::npos);
}

}  // namespace
}  // namespace duplex::test
