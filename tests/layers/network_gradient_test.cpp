// The gradients of a whole network, every kind of layer and joint in it, against central differences
// of its loss, and against wrong sharing of memory.
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

/// The loss along a line through the weights of one parameter.
class Line {
 public:
  Line(Network& network, const Batch& batch, Parameter& parameter, std::uint64_t number)
      : network_(network),
        batch_(batch),
        parameter_(parameter),
        origin_(test::values_of(network.device(), parameter.weights)) {
    const RandomStream random(seed, stream_of("direction"), static_cast<std::uint32_t>(number));
    for (std::size_t i = 0; i < origin_.size(); ++i) {
      direction_.push_back(random.below(i, 2) == 0 ? -1.0F : 1.0F);
    }
  }
  ~Line() { network_.device().upload(parameter_.weights, origin_.data()); }
  Line(const Line&) = delete;
  Line& operator=(const Line&) = delete;

  double along(const std::vector<float>& gradient) const {
    double sum = 0.0;
    for (std::size_t i = 0; i < gradient.size(); ++i) {
      sum += double{gradient[i]} * double{direction_[i]};
    }
    return sum;
  }

  double loss(double step) {
    std::vector<float> values = origin_;
    for (std::size_t i = 0; i < values.size(); ++i) {
      values[i] += static_cast<float>(step) * direction_[i];
    }
    network_.device().upload(parameter_.weights, values.data());
    network_.forward(batch_.images.data(), batch_.training());
    return network_.loss();
  }

 private:
  Network& network_;
  const Batch& batch_;
  Parameter& parameter_;
  std::vector<float> origin_, direction_;
};

class NetworkGradient : public test::OnEveryBackend {};

/// Every element goes up or down by one step, by random signs, so the derivative is about as large as
/// the gradient's norm, and any element that is missing or wrong shows. Where a kink of a ReLU or of
/// max pooling lies within the step, the difference to the side without it is the derivative.
TEST_P(NetworkGradient, AgreesWithCentralDifferences) {
  constexpr double loss_change = 1e-4, longest_step = 5e-4, tolerance = 0.02;
  constexpr std::uint64_t directions = 4;
  Network network(test::all_kinds(), *device, batch_size);
  const Batch batch(network.model(), batch_size);
  test::initialise_off_kinks(network, seed);
  network.forward(batch.images.data(), batch.training());
  network.backward();
  const std::vector<std::vector<float>> gradients = test::gradients_of(network);
  printf("LOSS %f\n", network.loss());

  int kinks = 0, checks = 0;
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    Parameter& parameter = network.parameters()[i];
    const double size = norm(gradients[i]);
    ASSERT_GT(size, 0.02) << parameter.name << " has no gradient to speak of";
    for (std::uint64_t number = 0; number < directions; ++number) {
      Line line(network, batch, parameter, number);
      const double expected = line.along(gradients[i]);
      const double step = std::min(loss_change / size, longest_step);
      const double below = line.loss(-step), here = line.loss(0.0), above = line.loss(step);
      const auto off = [&](double difference) { return std::abs(difference - expected) / size; };
      const double central = off((above - below) / (2.0 * step));
      const double best = std::min({central, off((here - below) / step), off((above - here) / step)});
      printf("%s %d: %.4f step %g err %.5f best %.5f\n", parameter.name.c_str(), (int)number, expected, step, central, best);
      EXPECT_LE(best, tolerance) << parameter.name << ", direction " << number << ": gradient "
                                 << expected << ", norm " << size << ", losses " << below << " "
                                 << here << " " << above << " at steps of " << step;
      kinks += central > tolerance;
      ++checks;
    }
  }
  EXPECT_LE(kinks, checks / 10) << "kinks everywhere: take another seed";
}

/// What a step computes must not depend on what the one before left in memory.
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
    printf("REF %s %g\n", fast.parameters()[i].name.c_str(), norm(difference)/norm(expected[i]));
    EXPECT_LE(norm(difference), 1e-4 * norm(expected[i])) << fast.parameters()[i].name;
  }
}

INSTANTIATE_TEST_SUITE_P(Backends, NetworkGradient, test::every_backend(),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace duplex
