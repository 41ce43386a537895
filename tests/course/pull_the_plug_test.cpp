// Right and wrong answers to exercise 10.
#include <gtest/gtest.h>

#include <cmath>

#include "course/10_pull_the_plug/check.h"
#include "tests/course/checked.h"

namespace duplex::course {
namespace {

using test::expect_right;
using test::expect_wrong;

/// Answers with one thing that students get wrong.
enum class Mistake {
  none,
  always_a_checkpoint,  ///< Nothing is lost where there are none.
  half,                 ///< Half an interval is lost on average, but not here.
  rounded_down,         ///< A batch that is left over is forgotten.
  shared_by_all,        ///< The lost worker takes its part of what it leaves.
  whole_interval,       ///< With each failure a whole interval is lost.
  without_root,         ///< The best interval is 2 cost between.
};

template <Mistake mistake>
std::int32_t again(std::int32_t done, std::int32_t every) {
  if (every == 0) return mistake == Mistake::always_a_checkpoint ? 0 : done;
  if (mistake == Mistake::half) return every / 2;
  return done % every;
}

template <Mistake mistake>
double seconds(std::int32_t workers, std::int32_t batches, double grad, std::int32_t done) {
  const double others = mistake == Mistake::shared_by_all ? workers : workers - 1;
  const double more = (batches - done) / others;
  return grad * (batches + (mistake == Mistake::rounded_down ? std::floor(more) : std::ceil(more)));
}

template <Mistake mistake>
double lost(double interval, double cost, double between) {
  return cost / interval +
         interval / (mistake == Mistake::whole_interval ? between : 2.0 * between);
}

template <Mistake mistake>
double best(double cost, double between) {
  const double square = 2.0 * cost * between;
  return mistake == Mistake::without_root ? square : std::sqrt(square);
}

template <Mistake mistake>
Exercise with() {
  return pull_the_plug_exercise(again<mistake>, seconds<mistake>, lost<mistake>, best<mistake>);
}

TEST(CoursePullThePlug, TheFormulasAreRight) {
  expect_right(with<Mistake::none>());
}

/// The plug is pulled for real. A busy machine may let a few more steps go by before it is.
TEST(CoursePullThePlug, WhatIsMeasuredIsWhatTheFormulasSay) {
  const Exercise exercise = with<Mistake::none>();
  const double batches = exercise.figures[0].measure();
  EXPECT_GE(batches, 40.0);
  EXPECT_LT(batches, 60.0 * 2);  // The run did not get to its end.
  const double steps = exercise.figures[2].measure();
  EXPECT_GE(steps, 0.0);
  EXPECT_LT(steps, 16.0 + 2);  // The first worker's row may be two steps ahead of its checkpoint.
  EXPECT_GE(exercise.figures[1].measure(), 30 * 0.2);
}

TEST(CoursePullThePlug, AnUnsolvedExerciseSaysWhatToWrite) {
  expect_wrong(pull_the_plug_exercise(exercise::steps_again, exercise::async_seconds,
                                      exercise::lost_part, exercise::best_interval),
               "no checkpoints", "steps_again() is not written yet");
}

TEST(CoursePullThePlug, StepsSinceTheLastCheckpointAreLost) {
  expect_wrong(with<Mistake::half>(), "every 16 steps", "steps_again() returned 8, expected 14");
  expect_wrong(with<Mistake::always_a_checkpoint>(), "no checkpoints",
               "steps_again() returned 0, expected 20");
}

TEST(CoursePullThePlug, OthersTrainWhatIsLeft) {
  expect_wrong(with<Mistake::rounded_down>(), "no multiple", "returned 11, expected 12");
  expect_wrong(with<Mistake::shared_by_all>(), "two workers", "returned 5, expected 6");
}

TEST(CoursePullThePlug, TheBestIntervalIsYoungs) {
  expect_wrong(with<Mistake::whole_interval>(), "a failure a day",
               "lost_part() returned 0.0173611");
  expect_wrong(with<Mistake::without_root>(), "a failure a day", "returned 172800, expected 415.");
}

}  // namespace
}  // namespace duplex::course
