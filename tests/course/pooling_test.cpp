// Right and wrong solutions of exercise 2.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "course/02_pooling/check.h"
#include "tests/course/checked.h"

namespace duplex::course {
namespace {

using exercise::PoolShape;
using test::expect_right;
using test::expect_wrong;

/// Plain loops with one thing that students get wrong.
enum class Mistake {
  none,
  overwrites,      ///< Instead of adding up where windows overlap.
  all_equal,       ///< All maxima of a window get the gradient.
  last,            ///< The last maximum gets it, not the first.
  starts_at_zero,  ///< The search for the maximum.
  leaves_others,   ///< Inputs without a gradient are not set to 0.
  one_map,
};

template <Mistake mistake>
void loops(const PoolShape& s, const float* x, const float* dy, float* dx) {
  const std::int64_t map = s.height * s.width;
  const bool adds = mistake != Mistake::overwrites && mistake != Mistake::leaves_others;
  if (mistake != Mistake::leaves_others) std::fill(dx, dx + s.maps * map, 0.0F);
  for (std::int64_t m = 0; m < (mistake == Mistake::one_map ? 1 : s.maps); ++m)
    for (std::int64_t oy = 0; oy < s.out_height(); ++oy)
      for (std::int64_t ox = 0; ox < s.out_width(); ++ox) {
        const float gradient = dy[(m * s.out_height() + oy) * s.out_width() + ox];
        const std::int64_t corner = m * map + oy * s.stride * s.width + ox * s.stride;
        std::int64_t best = corner;
        float most = mistake == Mistake::starts_at_zero ? 0.0F : x[corner];
        for (std::int64_t i = 0; i < s.window * s.window; ++i) {
          const std::int64_t at = corner + i / s.window * s.width + i % s.window;
          if (mistake == Mistake::last ? x[at] < most : x[at] <= most) continue;
          most = x[at];
          best = at;
        }
        for (std::int64_t i = 0; i < s.window * s.window; ++i) {
          const std::int64_t at = corner + i / s.window * s.width + i % s.window;
          if (at != best && !(mistake == Mistake::all_equal && x[at] == most)) continue;
          dx[at] = adds ? dx[at] + gradient : gradient;
        }
      }
}

TEST(CoursePooling, TheProductsOwnIsRight) {
  const Exercise exercise = pooling_exercise(products_pooling);
  expect_right(exercise);
  EXPECT_EQ(exercise.figures[0].measure(), 0.25);
  // By inclusion and exclusion over the windows that an input lies in; see the page's question.
  const double odd = 1 / 9.0, side = 2 / 9.0 - 1 / 15.0;
  const double corner = 4 / 9.0 - 4 / 15.0 - 2 / 17.0 + 4 / 21.0 - 1 / 25.0;
  EXPECT_NEAR(exercise.figures[1].measure(), (odd + 2 * side + corner) / 4, 0.002);
}

TEST(CoursePooling, LoopsAreRight) {
  expect_right(pooling_exercise(loops<Mistake::none>));
}

TEST(CoursePooling, TheStubIsNotWritten) {
  expect_wrong(pooling_exercise(exercise::max_pool_backward), "side by side",
               "max_pool_backward() is not written yet");
}

TEST(CoursePooling, InputsWithoutAGradientAreZero) {
  expect_wrong(pooling_exercise(loops<Mistake::leaves_others>), "side by side",
               "is nan, expected 0");
}

TEST(CoursePooling, EveryMapCounts) {
  expect_wrong(pooling_exercise(loops<Mistake::one_map>), "three maps", "dx[1]");
}

TEST(CoursePooling, MaximaMayBeNegative) {
  expect_wrong(pooling_exercise(loops<Mistake::starts_at_zero>), "all negative", "dx[0]");
}

TEST(CoursePooling, OverlappingWindowsAddUp) {
  expect_wrong(pooling_exercise(loops<Mistake::overwrites>), "overlap", "dx[0]");
}

TEST(CoursePooling, TheFirstOfEqualValuesCounts) {
  expect_wrong(pooling_exercise(loops<Mistake::last>), "equal values", "dx[0]");
  expect_wrong(pooling_exercise(loops<Mistake::all_equal>), "equal values", "dx[0]");
}

}  // namespace
}  // namespace duplex::course
