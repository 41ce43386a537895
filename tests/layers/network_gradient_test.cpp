// Compares the gradients of a whole network, which has every kind of layer and joint, with central
// differences of its loss, and tests that no step reads memory that another one left.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "tests/layers/devices.h"
#include "tests/layers/remembering_device.h"
#include "tests/layers/small_networks.h"

namespace duplex {
namespace {

using test::Batch;

constexpr std::int64_t batch_size = 4;
constexpr std::uint64_t seed = 11;

double norm(const std::vector<float>& values) {
  double sum = 0.0;
  for (float value : values) sum += double{value} * double{value};
  return std::sqrt(sum);
}

constexpr double tolerance = 0.02;
constexpr int directions = 4;

/// Measures how the loss changes along lines through the weights of one parameter. Every element
/// goes up or down by one step, by a random sign, so that the derivative is about as large as the
/// gradient's norm, and any element that is missing or wrong shows.
class Differences {
 public:
  Differences(Network& network, const Batch& batch, Parameter& parameter, double size)
      : size_(size) {
    // A longer step meets more kinks; a shorter one drowns in the rounding of the loss.
    step_ = std::min(1e-4 / size, 5e-4);
    const std::vector<float> origin = test::values_of(network.device(), parameter.weights);
    const auto loss = [&](const std::vector<float>& direction, double step) {
      std::vector<float> values = origin;
      for (std::size_t i = 0; i < values.size(); ++i) {
        values[i] += static_cast<float>(step) * direction[i];
      }
      network.device().upload(parameter.weights, values.data());
      network.forward(batch.images.data(), batch.training());
      return network.loss();
    };
    for (std::uint32_t number = 0; number < directions; ++number) {
      const RandomStream random(seed, stream_of("direction"), number);
      std::vector<float> direction;
      for (std::size_t i = 0; i < origin.size(); ++i) {
        direction.push_back(random.below(i, 2) == 0 ? -1.0F : 1.0F);
      }
      lines_.push_back(
          {direction, loss(direction, -step_), loss(direction, 0.0), loss(direction, step_)});
    }
    network.device().upload(parameter.weights, origin.data());
  }

  /// Returns how far a gradient is off the differences in the worst direction, relative to its
  /// norm. If a kink of a ReLU or of max pooling lies within the step, the difference to the side
  /// without it is the derivative.
  double off(const std::vector<float>& gradient) const {
    double worst = 0.0;
    for (const Line& line : lines_) {
      worst = std::max(worst, std::min(central(line, gradient), one_sided(line, gradient)));
    }
    return worst;
  }
  int kinks(const std::vector<float>& gradient) const {
    int count = 0;
    for (const Line& line : lines_) {
      count += central(line, gradient) > tolerance && one_sided(line, gradient) <= tolerance;
    }
    return count;
  }

 private:
  struct Line {
    std::vector<float> direction;
    double below, here, above;  ///< Losses.
  };

  double off(double derivative, const Line& line, const std::vector<float>& gradient) const {
    double expected = 0.0;
    for (std::size_t i = 0; i < gradient.size(); ++i) {
      expected += double{gradient[i]} * double{line.direction[i]};
    }
    return std::abs(derivative - expected) / size_;
  }
  double central(const Line& line, const std::vector<float>& gradient) const {
    return off((line.above - line.below) / (2.0 * step_), line, gradient);
  }
  double one_sided(const Line& line, const std::vector<float>& gradient) const {
    return std::min(off((line.here - line.below) / step_, line, gradient),
                    off((line.above - line.here) / step_, line, gradient));
  }

  double size_, step_;
  std::vector<Line> lines_;
};

class NetworkGradient : public test::OnEveryBackend {};

TEST_P(NetworkGradient, AgreesWithCentralDifferences) {
  Network network(test::all_kinds(), *device, batch_size);
  const Batch batch(network.model(), batch_size);
  test::initialise_off_kinks(network, seed);
  network.forward(batch.images.data(), batch.training());
  network.backward();
  const std::vector<std::vector<float>> gradients = test::gradients_of(network);

  int kinks = 0;
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    Parameter& parameter = network.parameters()[i];
    const double size = norm(gradients[i]);
    ASSERT_GT(size, 0.02) << parameter.name << " has no gradient to speak of";
    const Differences differences(network, batch, parameter, size);
    EXPECT_LE(differences.off(gradients[i]), tolerance) << parameter.name << ", norm " << size;
    kinks += differences.kinks(gradients[i]);

    // The check must see a gradient that is wrong by a tenth, and one of which a half is missing.
    std::vector<float> wrong = gradients[i];
    for (float& value : wrong) value *= 1.1F;
    EXPECT_GT(differences.off(wrong), tolerance) << parameter.name << ": the check is blind";
    wrong = gradients[i];
    std::fill(wrong.begin(), wrong.begin() + static_cast<std::ptrdiff_t>(wrong.size() / 2), 0.0F);
    if (norm(wrong) > 0.9 * size) continue;
    EXPECT_GT(differences.off(wrong), tolerance) << parameter.name << ": the check is blind";
  }
  EXPECT_LE(kinks, static_cast<int>(gradients.size()) * directions / 10)
      << "kinks everywhere: take another seed";
}

/// A step's result must not depend on what the step before left in memory.
TEST_P(NetworkGradient, ReadsNothingThatTheStepDidNotWrite) {
  test::RememberingDevice remembering(*device);
  Network network(test::all_kinds(), remembering, batch_size);
  const Batch batch(network.model(), batch_size);
  test::initialise_off_kinks(network, seed);
  Tensor arena = remembering.allocation_of(network.arena_bytes());
  std::vector<std::vector<std::vector<float>>> results;
  for (float left : {std::numeric_limits<float>::quiet_NaN(), 0.0F, 1e30F}) {
    device->fill(arena, left);
    network.forward(batch.images.data(), batch.training());
    EXPECT_TRUE(std::isfinite(network.loss()));
    network.backward();
    results.push_back(test::gradients_of(network));
  }
  ASSERT_GT(norm(results[0][0]), 0.0);
  for (std::size_t i = 0; i < results[0].size(); ++i) {
    EXPECT_TRUE(results[0][i] == results[1][i]) << network.parameters()[i].name;
    EXPECT_TRUE(results[0][i] == results[2][i]) << network.parameters()[i].name;
  }
}

TEST_P(NetworkGradient, AgreesWithTheReference) {
  const auto reference = test::backend("reference");
  Network fast(test::all_kinds(), *device, batch_size);
  Network slow(test::all_kinds(), *reference, batch_size);
  const Batch batch(fast.model(), batch_size);
  for (Network* network : {&fast, &slow}) {
    test::initialise_off_kinks(*network, seed);
    network->forward(batch.images.data(), batch.training());
    network->backward();
  }
  EXPECT_NEAR(fast.loss(), slow.loss(), 1e-6 * slow.loss());
  const auto actual = test::gradients_of(fast), expected = test::gradients_of(slow);
  for (std::size_t i = 0; i < expected.size(); ++i) {
    std::vector<float> difference = actual[i];
    for (std::size_t k = 0; k < difference.size(); ++k) difference[k] -= expected[i][k];
    EXPECT_LE(norm(difference), 1e-4 * norm(expected[i])) << fast.parameters()[i].name;
  }
}

INSTANTIATE_TEST_SUITE_P(Backends, NetworkGradient, test::every_backend(),
                         [](const auto& info) { return std::string(info.param); });

TEST(NetworkGradients, NoDeviceIsPreparedForThoseThatNobodyWants) {
  const auto device = make_reference_device();
  const auto wanted = [&](const Model& model, bool training) {
    test::RememberingDevice remembering(*device);
    const Network network(model, remembering, batch_size, training);
    std::vector<Gradients> of;
    for (const ConvSpec& spec : remembering.convolutions()) of.push_back(spec.gradients);
    return of;
  };
  const std::vector<Gradients> all = wanted(test::all_kinds(), true);
  ASSERT_GT(all.size(), 10U);
  EXPECT_EQ(all, std::vector<Gradients>(all.size(), Gradients::all));
  EXPECT_EQ(wanted(test::all_kinds(), false), std::vector<Gradients>(all.size(), Gradients::none));
  // The convolution of this network reads the images, whose gradient nobody wants.
  EXPECT_EQ(wanted(test::by_sample(), true), std::vector<Gradients>{Gradients::weights});
}

TEST(NetworkGradients, EveryConvolutionIsAnnouncedAsItIsMade) {
  const auto device = make_reference_device();
  for (const bool training : {true, false}) {
    for (const Model& model : {test::all_kinds(), test::by_sample()}) {
      test::RememberingDevice remembering(*device);
      const Network network(model, remembering, batch_size, training);
      const auto text = [](const ConvSpec& of, const Shape& x) {
        const Window& window = of.window;
        std::string words = x.str();
        for (const std::int64_t number :
             {of.filters, window.height, window.width, window.stride_y, window.stride_x,
              window.padding.top, window.padding.left, window.padding.bottom, window.padding.right,
              of.groups, std::int64_t{of.bias}, std::int64_t{of.relu},
              static_cast<std::int64_t>(of.gradients)})
          words += ' ' + std::to_string(number);
        return words;
      };
      std::vector<std::string> announced, made;
      for (const auto& [spec, x] : remembering.announced()) announced.push_back(text(spec, x));
      for (std::size_t i = 0; i < remembering.convolutions().size(); ++i)
        made.push_back(text(remembering.convolutions()[i], remembering.convolved()[i]));
      EXPECT_FALSE(made.empty());
      EXPECT_EQ(announced, made);
    }
  }
}

}  // namespace
}  // namespace duplex
