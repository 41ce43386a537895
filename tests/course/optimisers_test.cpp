// Right and wrong solutions of exercise 4.
#include <gtest/gtest.h>

#include <cmath>

#include "core/optimiser.h"
#include "course/04_optimisers/check.h"
#include "tests/course/checked.h"

namespace duplex::course {
namespace {

using exercise::AdamSettings;
using test::expect_right;
using test::expect_wrong;

/// The product's own optimisers.
void right_momentum(float rate, float momentum, std::size_t count, float* w, const float* gradient,
                    float* velocity) {
  OptimiserStep step;
  step.spec.momentum = momentum;
  step.rate = rate;
  update(step, count, w, gradient, &velocity);
}

void right_adam(const AdamSettings& settings, std::uint64_t number, std::size_t count, float* w,
                const float* gradient, float* m, float* v) {
  OptimiserStep step;
  step.spec.kind = OptimiserKind::adam;
  step.spec.beta1 = settings.beta1;
  step.spec.beta2 = settings.beta2;
  step.spec.epsilon = settings.epsilon;
  step.rate = settings.rate;
  step.number = number;
  float* state[] = {m, v};
  update(step, count, w, gradient, state);
}

TEST(CourseOptimisers, TheProductsOwnAreRight) {
  const Exercise exercise = optimisers_exercise(right_momentum, right_adam);
  expect_right(exercise);
  EXPECT_NEAR(exercise.figures[0].measure(), 1149.34, 0.01);
  EXPECT_LT(exercise.figures[1].measure(), 1e-5);
  EXPECT_GT(exercise.figures[2].measure(), 0.05);
}

TEST(CourseOptimisers, TheStubIsNotWritten) {
  expect_wrong(optimisers_exercise(exercise::momentum_step, exercise::adam_step), "momentum",
               "momentum_step() is not written yet");
  expect_wrong(optimisers_exercise(right_momentum, exercise::adam_step), "one step of Adam",
               "adam_step() is not written yet");
}

TEST(CourseOptimisers, MomentumIsNotDampened) {
  const auto dampened = [](float rate, float momentum, std::size_t count, float* w, const float* g,
                           float* velocity) {
    for (std::size_t i = 0; i < count; ++i) {
      velocity[i] = momentum * velocity[i] + (1.0F - momentum) * g[i];
      w[i] -= rate * velocity[i];
    }
  };
  expect_wrong(optimisers_exercise(dampened, right_adam), "one step of momentum",
               "after step 1, velocity[0] is");
}

TEST(CourseOptimisers, TheVelocityComesFirst) {
  const auto late = [](float rate, float momentum, std::size_t count, float* w, const float* g,
                       float* velocity) {
    for (std::size_t i = 0; i < count; ++i) {
      w[i] -= rate * velocity[i];
      velocity[i] = momentum * velocity[i] + g[i];
    }
  };
  expect_wrong(optimisers_exercise(late, right_adam), "one step of momentum",
               "weights[0] is 0, expected");
}

TEST(CourseOptimisers, TheVelocityIsKept) {
  const auto forgets = [](float rate, float, std::size_t count, float* w, const float* g,
                          float* velocity) {
    for (std::size_t i = 0; i < count; ++i) w[i] -= rate * (velocity[i] = g[i]);
  };
  expect_wrong(optimisers_exercise(forgets, right_adam), "four steps of momentum",
               "after step 2, velocity");
}

/// Adam with one thing that students get wrong.
enum class Mistake { none, uncorrected, from_zero, epsilon_inside, no_epsilon };

template <Mistake mistake>
void adam(const AdamSettings& s, std::uint64_t step, std::size_t count, float* w, const float* g,
          float* m, float* v) {
  const auto t = static_cast<float>(mistake == Mistake::from_zero ? step - 1 : step);
  const bool corrects = mistake != Mistake::uncorrected;
  for (std::size_t i = 0; i < count; ++i) {
    m[i] = s.beta1 * m[i] + (1.0F - s.beta1) * g[i];
    v[i] = s.beta2 * v[i] + (1.0F - s.beta2) * g[i] * g[i];
    const float first = corrects ? m[i] / (1.0F - std::pow(s.beta1, t)) : m[i];
    const float second = corrects ? v[i] / (1.0F - std::pow(s.beta2, t)) : v[i];
    const float below = mistake == Mistake::epsilon_inside ? std::sqrt(second + s.epsilon)
                        : mistake == Mistake::no_epsilon   ? std::sqrt(second)
                                                           : std::sqrt(second) + s.epsilon;
    w[i] -= s.rate * first / below;
  }
}

TEST(CourseOptimisers, AdamInPlainLoopsIsRight) {
  expect_right(optimisers_exercise(right_momentum, adam<Mistake::none>));
}

TEST(CourseOptimisers, AdamsMeansAreCorrectedForTheirStart) {
  expect_wrong(optimisers_exercise(right_momentum, adam<Mistake::uncorrected>), "one step of Adam",
               "after step 1, weights");
  expect_wrong(optimisers_exercise(right_momentum, adam<Mistake::from_zero>), "one step of Adam",
               "weights[0] is");
}

TEST(CourseOptimisers, EpsilonStandsOutsideOfTheRoot) {
  expect_wrong(optimisers_exercise(right_momentum, adam<Mistake::epsilon_inside>), "1e-8",
               "weights");
  expect_wrong(optimisers_exercise(right_momentum, adam<Mistake::no_epsilon>), "1e-8", "weights");
}

}  // namespace
}  // namespace duplex::course
