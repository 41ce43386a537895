// Right and wrong solutions of exercise 3.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "course/03_gradient_check/check.h"
#include "tests/course/checked.h"

namespace duplex::course {
namespace {

using exercise::Loss;
using test::expect_right;
using test::expect_wrong;

/// A student chooses these, well or badly.
struct Choices {
  float step = 0.02F;
  bool forward = false;                      ///< (f(w + h) - f(w)) / h.
  bool adds_back = false;                    ///< w is brought back by adding and subtracting.
  float relative = 0.04F, absolute = 5e-4F;  ///< Tolerance, the latter times the largest element.
};

std::ptrdiff_t find(const Choices& choices, const Loss& loss, std::size_t count, float* w,
                    const float* gradient) {
  float largest = 0.0F;
  for (std::size_t i = 0; i < count; ++i) largest = std::max(largest, std::fabs(gradient[i]));
  std::ptrdiff_t found = -1;
  float most = 1.0F;
  for (std::size_t i = 0; i < count; ++i) {
    const float before = w[i], h = choices.step;
    w[i] += h;
    const float above = loss(w);
    w[i] -= choices.forward ? h : 2 * h;
    const float below = loss(w);
    if (!choices.forward) w[i] += h;
    if (!choices.adds_back) w[i] = before;
    const float numeric = (above - below) / (choices.forward ? h : 2 * h);
    const float allowed = choices.relative * std::fabs(numeric) + choices.absolute * largest;
    const float excess = std::fabs(numeric - gradient[i]) / allowed;
    if (excess <= most) continue;
    most = excess;
    found = static_cast<std::ptrdiff_t>(i);
  }
  return found;
}

TEST(CourseGradientCheck, CentralDifferencesAreRight) {
  const auto central = [](const Loss& loss, std::size_t count, float* w, const float* gradient) {
    return find({}, loss, count, w, gradient);
  };
  const Exercise exercise = gradient_check_exercise(central);
  expect_right(exercise);
  EXPECT_EQ(exercise.figures[0].measure(), 2 * 57);
  // The page's formula, with 6e-8 for the rounding error of a loss of 1.
  const double formula = std::cbrt(3 * 6e-8 * 1.3 / 0.26);
  EXPECT_GT(exercise.figures[1].measure(), formula / 4);
  EXPECT_LT(exercise.figures[1].measure(), formula * 4);
}

TEST(CourseGradientCheck, TheStubIsNotWritten) {
  expect_wrong(gradient_check_exercise(exercise::find_wrong), "wrong sign",
               "find_wrong() is not written yet");
}

TEST(CourseGradientCheck, AStepMayBeTooSmall) {
  const auto tiny = [](const Loss& loss, std::size_t count, float* w, const float* gradient) {
    return find({1e-6F}, loss, count, w, gradient);
  };
  const Report report = gradient_check_exercise(tiny).check();
  EXPECT_FALSE(report.ok());
  test::expect_has(report.complaint, "find_wrong() returned");
}

TEST(CourseGradientCheck, AStepMayBeTooLarge) {
  const auto large = [](const Loss& loss, std::size_t count, float* w, const float* gradient) {
    return find({1.0F, true}, loss, count, w, gradient);
  };
  expect_wrong(gradient_check_exercise(large), "wrong sign", "find_wrong() returned");
}

TEST(CourseGradientCheck, ToleranceThatIsAbsoluteMissesSmallElements) {
  const auto absolute = [](const Loss& loss, std::size_t count, float* w, const float* gradient) {
    Choices choices;
    choices.relative = 0.0F;
    choices.absolute = 0.05F;
    return find(choices, loss, count, w, gradient);
  };
  expect_wrong(gradient_check_exercise(absolute), "a hundredth", "returned -1 (none is wrong)");
}

TEST(CourseGradientCheck, ToleranceMayBeTooGenerous) {
  const auto generous = [](const Loss& loss, std::size_t count, float* w, const float* gradient) {
    Choices choices;
    choices.relative = 0.2F;
    return find(choices, loss, count, w, gradient);
  };
  expect_wrong(gradient_check_exercise(generous), "larger by 12 %", "returned -1 (none is wrong)");
}

TEST(CourseGradientCheck, WeightsAreBroughtBackToTheBit) {
  const auto adds = [](const Loss& loss, std::size_t count, float* w, const float* gradient) {
    Choices choices;
    choices.adds_back = true;
    return find(choices, loss, count, w, gradient);
  };
  expect_wrong(gradient_check_exercise(adds), "wrong sign", "find_wrong() changed weights[");
}

}  // namespace
}  // namespace duplex::course
