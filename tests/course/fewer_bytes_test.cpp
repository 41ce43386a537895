// Right and wrong solutions of exercise 9.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "course/09_fewer_bytes/check.h"
#include "course/09_fewer_bytes/training.h"
#include "tests/course/checked.h"

namespace duplex::course {
namespace {

using test::expect_right;
using test::expect_wrong;

/// A selection with one thing that students get wrong.
enum class Mistake {
  none,
  values,        ///< The largest values are taken, not magnitudes.
  unordered,     ///< By magnitude, not by number.
  not_added,     ///< The residual is not added to the gradient.
  not_cleared,   ///< What was sent stays in the residual.
  not_kept,      ///< The residual is not written.
  too_few,       ///< The last one is missing.
  by_threshold,  ///< Of equal magnitudes all are taken: more than fit.
};

template <Mistake mistake>
void select(std::int32_t count, const float* gradient, float* residual, std::int32_t keep,
            std::int32_t* index, float* value) {
  std::vector<float> sum(gradient, gradient + count);
  if (residual != nullptr && mistake != Mistake::not_added)
    for (std::int32_t i = 0; i < count; ++i) sum[static_cast<std::size_t>(i)] += residual[i];
  const auto size = [&](std::int32_t i) {
    const float each = sum[static_cast<std::size_t>(i)];
    return mistake == Mistake::values ? each : std::fabs(each);
  };
  std::vector<std::int32_t> order(sum.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::int32_t a, std::int32_t b) { return size(a) > size(b); });
  std::int32_t chosen = mistake == Mistake::too_few ? keep - 1 : keep;
  if (mistake == Mistake::by_threshold)
    while (chosen < count && size(order[static_cast<std::size_t>(chosen)]) ==
                                 size(order[static_cast<std::size_t>(keep - 1)]))
      ++chosen;
  if (mistake != Mistake::unordered) std::sort(order.begin(), order.begin() + chosen);
  if (residual != nullptr && mistake != Mistake::not_kept)
    std::copy(sum.begin(), sum.end(), residual);
  for (std::int32_t k = 0; k < chosen; ++k) {
    const std::int32_t i = order[static_cast<std::size_t>(k)];
    index[k] = i;
    value[k] = sum[static_cast<std::size_t>(i)];
    if (residual != nullptr && mistake != Mistake::not_cleared && mistake != Mistake::not_kept)
      residual[i] = 0.0F;
  }
}

TEST(CourseFewerBytes, SortingIsRight) {
  const Exercise exercise = fewer_bytes_exercise(select<Mistake::none>);
  expect_right(exercise);
  EXPECT_EQ(exercise.figures[0].measure(), 0.02);
  const double whole = SmallTraining().accuracy([](std::size_t, std::vector<float>&) {});
  const double lost = exercise.figures[1].measure(), kept = exercise.figures[2].measure();
  EXPECT_GT(whole, 0.8);
  EXPECT_LT(lost, whole - 0.03);  // That is what the exercise shows.
  EXPECT_GT(kept, whole - 0.03);
}

TEST(CourseFewerBytes, TheStubIsNotWritten) {
  expect_wrong(fewer_bytes_exercise(exercise::select_largest), "largest of three",
               "select_largest() is not written yet");
}

TEST(CourseFewerBytes, MagnitudesCount) {
  expect_wrong(fewer_bytes_exercise(select<Mistake::values>), "magnitudes",
               "an element of magnitude 0.5 is sent, and one of 3 is not");
}

TEST(CourseFewerBytes, NumbersAscend) {
  expect_wrong(fewer_bytes_exercise(select<Mistake::unordered>), "magnitudes",
               "index[1] is 1, but the one before is 3");
}

TEST(CourseFewerBytes, ThereAreAsManyAsAsked) {
  expect_wrong(fewer_bytes_exercise(select<Mistake::too_few>), "largest of three",
               "index[0] is -1, but there are 3 elements");
  expect_wrong(fewer_bytes_exercise(select<Mistake::by_threshold>), "equal magnitudes",
               "beyond the end of index");
}

TEST(CourseFewerBytes, TheResidualIsAddedKeptAndCleared) {
  expect_wrong(fewer_bytes_exercise(select<Mistake::not_added>), "a residual",
               "an element of magnitude 0.5 is sent");
  expect_wrong(fewer_bytes_exercise(select<Mistake::not_kept>), "a residual", "residual[0] is");
  expect_wrong(fewer_bytes_exercise(select<Mistake::not_cleared>), "a residual", "residual[0] is");
}

}  // namespace
}  // namespace duplex::course
