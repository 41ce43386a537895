// Tests the optimisers against the equations in double precision and against ten recorded steps of
// PyTorch's; learning rates; and that the cut of a span does not change a bit.
#include "core/optimiser.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "core/random.h"
#include "tests/core/optimiser_recorded.h"

namespace duplex {
namespace {

OptimiserSpec sgd(float momentum, bool nesterov, float weight_decay) {
  OptimiserSpec spec;
  spec.momentum = momentum;
  spec.nesterov = nesterov;
  spec.weight_decay = weight_decay;
  return spec;
}

OptimiserSpec adam(float beta1, float beta2, float epsilon, float weight_decay) {
  OptimiserSpec spec;
  spec.kind = OptimiserKind::adam;
  spec.beta1 = beta1;
  spec.beta2 = beta2;
  spec.epsilon = epsilon;
  spec.weight_decay = weight_decay;
  return spec;
}

struct Case {
  std::string name;
  OptimiserSpec spec;
  const recorded::Steps* steps;
};

const std::vector<Case>& cases() {
  static const std::vector<Case> all = {
      {"sgd", sgd(0, false, 0), &recorded::sgd},
      {"sgd_weight_decay", sgd(0, false, 0.05F), &recorded::sgd_weight_decay},
      {"sgd_momentum", sgd(0.9F, false, 0.05F), &recorded::sgd_momentum},
      {"sgd_nesterov", sgd(0.9F, true, 0.05F), &recorded::sgd_nesterov},
      {"adam", adam(0.9F, 0.999F, 1e-8F, 0), &recorded::adam},
      {"adam_weight_decay", adam(0.8F, 0.99F, 1e-6F, 0.05F), &recorded::adam_weight_decay},
  };
  return all;
}

/// The weights and state of one span, with the call that updates a part of it.
struct Span {
  explicit Span(std::vector<float> start)
      : weights(std::move(start)), state(2, std::vector<float>(weights.size())) {}

  void update(const OptimiserStep& step, const std::vector<float>& gradient, std::size_t begin,
              std::size_t end) {
    float* pointers[2] = {state[0].data() + begin, state[1].data() + begin};
    duplex::update(step, end - begin, weights.data() + begin, gradient.data() + begin, pointers);
  }

  std::vector<float> weights;
  std::vector<std::vector<float>> state;
};

class Optimiser : public testing::TestWithParam<Case> {};

INSTANTIATE_TEST_SUITE_P(All, Optimiser, testing::ValuesIn(cases()),
                         [](const auto& info) { return info.param.name; });

TEST_P(Optimiser, TakesTheStepsOfPyTorch) {
  Span span({recorded::start.begin(), recorded::start.end()});
  std::vector<float> gradient(span.weights.size());
  for (std::size_t number = 1; number <= GetParam().steps->size(); ++number) {
    for (std::size_t i = 0; i < gradient.size(); ++i) {
      gradient[i] = recorded::curvature[i] * (span.weights[i] - recorded::target[i]);
    }
    span.update({GetParam().spec, 0.1F, number}, gradient, 0, gradient.size());
    for (std::size_t i = 0; i < gradient.size(); ++i) {
      EXPECT_NEAR(span.weights[i], (*GetParam().steps)[number - 1][i], 2e-6)
          << "step " << number << ", weight " << i;
    }
  }
}

/// Takes one weight through the equations as they are printed, in double precision.
class Exact {
 public:
  Exact(const OptimiserSpec& spec, double weight) : spec_(spec), weight_(weight) {}

  double step(double rate, double gradient, int t) {
    const double g = gradient + spec_.weight_decay * weight_;
    if (spec_.kind == OptimiserKind::sgd) {
      first_ = spec_.momentum * first_ + g;
      weight_ -= rate * (spec_.nesterov ? g + spec_.momentum * first_ : first_);
    } else {
      first_ = spec_.beta1 * first_ + (1.0 - spec_.beta1) * g;
      second_ = spec_.beta2 * second_ + (1.0 - spec_.beta2) * g * g;
      const double m = first_ / (1.0 - std::pow(spec_.beta1, t));
      const double v = second_ / (1.0 - std::pow(spec_.beta2, t));
      weight_ -= rate * m / (std::sqrt(v) + spec_.epsilon);
    }
    return weight_;
  }

 private:
  OptimiserSpec spec_;
  double weight_;
  double first_ = 0, second_ = 0;
};

TEST_P(Optimiser, FollowsTheEquationsAtChangingRates) {
  constexpr std::size_t count = 101;
  const OptimiserSpec& spec = GetParam().spec;
  const RandomStream random(1, stream_of(GetParam().name));
  std::vector<float> start(count), gradient(count);
  random.fill_uniform(start.data(), count);
  std::vector<Exact> exact;
  for (float weight : start) exact.emplace_back(spec, weight);
  Span span(start);
  for (int t = 1; t <= 20; ++t) {
    const float rate = 0.02F / static_cast<float>(t);
    random.fill_uniform(gradient.data(), count, static_cast<std::uint64_t>(t) * count);
    for (float& value : gradient) value -= 0.5F;
    span.update({spec, rate, static_cast<std::uint64_t>(t)}, gradient, 0, count);
    for (std::size_t i = 0; i < count; ++i) {
      ASSERT_NEAR(span.weights[i], exact[i].step(rate, gradient[i], t), 2e-6)
          << "step " << t << ", weight " << i;
    }
  }
}

TEST_P(Optimiser, GivesTheSameBitsHoweverTheSpanIsCut) {
  constexpr std::size_t count = 1003;
  const OptimiserSpec& spec = GetParam().spec;
  const RandomStream random(2, stream_of(GetParam().name));
  std::vector<float> start(count), gradient(count);
  random.fill_uniform(start.data(), count);
  Span whole(start), cut(start);
  for (std::uint64_t number = 1; number <= 5; ++number) {
    random.fill_uniform(gradient.data(), count, number * count);
    for (float& value : gradient) value -= 0.5F;
    const OptimiserStep step = {spec, 0.03F, number};
    whole.update(step, gradient, 0, count);
    std::size_t begin = 0;
    for (const std::size_t end : {std::size_t{1}, std::size_t{8}, std::size_t{501}, count}) {
      cut.update(step, gradient, begin, end);
      begin = end;
    }
    EXPECT_EQ(std::memcmp(whole.weights.data(), cut.weights.data(), count * sizeof(float)), 0);
    for (int i = 0; i < spec.states(); ++i) {
      const auto at = static_cast<std::size_t>(i);
      EXPECT_EQ(std::memcmp(whole.state[at].data(), cut.state[at].data(), count * sizeof(float)),
                0);
    }
  }
}

TEST(OptimiserSpec, CountsItsStates) {
  EXPECT_EQ(sgd(0, false, 0.1F).states(), 0);
  EXPECT_EQ(sgd(0.9F, false, 0).states(), 1);
  EXPECT_EQ(sgd(0.9F, true, 0).states(), 1);
  EXPECT_EQ(adam(0.9F, 0.999F, 1e-8F, 0).states(), 2);
}

TEST(LearningRate, IsConstantByItself) {
  LearningRate rate;
  rate.base = 0.25;
  EXPECT_EQ(rate.at(0), 0.25F);
  EXPECT_EQ(rate.at(1'000'000'000'000), 0.25F);
}

TEST(LearningRate, FallsAtTheBoundaries) {
  LearningRate rate;
  rate.base = 1.0;
  rate.factor = 0.5;
  rate.boundaries = {10, 20};
  EXPECT_EQ(rate.at(9), 1.0F);
  EXPECT_EQ(rate.at(10), 0.5F);
  EXPECT_EQ(rate.at(19), 0.5F);
  EXPECT_EQ(rate.at(20), 0.25F);
}

TEST(LearningRate, WarmsUpLinearly) {
  LearningRate rate;
  rate.base = 0.8;
  rate.warmup = 4;
  EXPECT_FLOAT_EQ(rate.at(0), 0.2F);
  EXPECT_FLOAT_EQ(rate.at(1), 0.4F);
  EXPECT_FLOAT_EQ(rate.at(2), 0.6F);
  EXPECT_FLOAT_EQ(rate.at(3), 0.8F);
  EXPECT_FLOAT_EQ(rate.at(4), 0.8F);
}

TEST(LearningRate, WarmsUpAndFallsTogether) {
  LearningRate rate;
  rate.base = 1.0;
  rate.factor = 0.1;
  rate.boundaries = {1};
  rate.warmup = 2;
  EXPECT_FLOAT_EQ(rate.at(0), 0.5F);
  EXPECT_FLOAT_EQ(rate.at(1), 0.1F);
}

}  // namespace
}  // namespace duplex
