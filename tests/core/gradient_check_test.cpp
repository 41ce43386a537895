// The checker itself: it must catch what is wrong.
#include "tests/core/gradient_check.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "tests/core/subjects.h"
#include "tests/core/values.h"

namespace duplex::test {
namespace {

ConvSpec small_conv() {
  ConvSpec spec;
  spec.filters = 3;
  spec.window = {3, 3, 1, 1, {1, 1, 1, 1}};
  return spec;
}

/// The reference's convolution, with `spoil` done to its gradients (x, weights, bias).
Subject spoilt_conv(Device& device, const std::function<void(std::vector<Tensor>&)>& spoil) {
  Subject subject = on_plain(device, {{2, 2, 4, 4}}, conv_subject(small_conv()));
  const auto backward = subject.backward;
  subject.backward = [=](std::vector<Tensor>& gradients, const Tensor& dy,
                         const std::vector<Tensor>& inputs, const Tensor& y) {
    backward(gradients, dy, inputs, y);
    spoil(gradients);
  };
  return subject;
}

::testing::AssertionResult check(const std::function<void(std::vector<Tensor>&)>& spoil) {
  const auto device = make_backend("reference");
  Rig rig(*device, spoilt_conv(*device, spoil));
  return gradients_agree(rig, random_inputs(rig.subject(), 5), conv_tolerance);
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
  EXPECT_EQ(values, (Values{1, 2}));  // left as they were
}

// A backward pass that forgets ReLU's mask.
TEST(GradientCheck, CatchesAMissingMask) {
  const auto device = make_backend("reference");
  Subject unmasked = on_plain(*device, {{2, 3, 3, 3}}, activation_subject(ActivationKind::relu));
  unmasked.backward = [&](std::vector<Tensor>& gradients, const Tensor& dy,
                          const std::vector<Tensor>&,
                          const Tensor&) { device->convert(gradients[0], dy); };
  Rig rig(*device, unmasked);
  EXPECT_FALSE(gradients_agree(rig, {separated_values({2, 3, 3, 3}, 5, 0.1F)}, relu_tolerance));
}

// Two rigs that differ in one weight's last digits are told apart.
TEST(SameResults, CatchesASmallDifference) {
  const auto device = make_backend("reference");
  const auto make = [&] { return on_plain(*device, {{2, 2, 4, 4}}, conv_subject(small_conv())); };
  Rig expected(*device, make()), same(*device, make());
  const std::vector<Values> inputs = random_inputs(expected.subject(), 1);
  EXPECT_TRUE(same_results(same, expected, inputs, conv_tolerance));
  Rig spoilt(*device, spoilt_conv(*device, [](std::vector<Tensor>& gradients) {
    gradients[1].data[2] *= 1.001F;
  }));
  const auto result = same_results(spoilt, expected, inputs, conv_tolerance);
  EXPECT_FALSE(result);
  EXPECT_NE(std::string(result.message()).find("gradient of weights"), std::string::npos);
}

}  // namespace
}  // namespace duplex::test
