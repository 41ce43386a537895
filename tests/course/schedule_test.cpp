// Good and bad schedules for exercise 11.
#include <gtest/gtest.h>

#include "core/error.h"
#include "course/11_schedule/check.h"
#include "tests/course/checked.h"

namespace duplex::course {
namespace {

using exercise::Transfer;
using test::expect_right;
using test::expect_wrong;

std::int32_t longest_wait(const Transfer*, std::int32_t, std::int32_t) {
  return 0;
}

std::int32_t lowest_tensor(const Transfer* waiting, std::int32_t count, std::int32_t) {
  std::int32_t best = 0;
  for (std::int32_t i = 1; i < count; ++i)
    if (waiting[i].tensor < waiting[best].tensor) best = i;
  return best;
}

std::int32_t beyond(const Transfer*, std::int32_t count, std::int32_t) {
  return count;
}

std::int32_t for_ever(const Transfer* waiting, std::int32_t, std::int32_t) {
  const volatile double& seconds = waiting[0].seconds;
  while (seconds > 0.0) {
  }
  return 0;
}

/// One tensor and two workers: everything can be worked out by hand.
TEST(CourseCentralStep, TakesWhatATrainingOfOneTensorTakes) {
  const CentralTraining training{2, {1.0}, {0.1}, {0.2}};
  EXPECT_DOUBLE_EQ(training.comm_seconds(), 1.0);
  EXPECT_DOUBLE_EQ(training.grad_seconds(), 0.3);
  EXPECT_DOUBLE_EQ(training.least_seconds(), 2.0);
  // One worker has its weights a second before the other, whose gradient comes in last: 2 s for
  // both weights, 0.303 or 0.3 s of computing, and a second for the gradient.
  EXPECT_NEAR(step_seconds(training, queued_semaphore, queued_semaphore), 3.303, 1e-9);
  EXPECT_NEAR(step_seconds({1, {1.0}, {0.1}, {0.2}}, queued_semaphore, queued_semaphore), 2.3,
              1e-9);
  EXPECT_THROW(step_seconds(training, beyond, queued_semaphore), Error);
}

TEST(CourseSchedule, TheLowestTensorAndTheSameWorkerAreBetter) {
  const Exercise exercise = schedule_exercise(lowest_tensor, queued_semaphore);
  expect_right(exercise);
  test::expect_has(exercise.known(), "17 % less than the semaphore's; the bound is 0.5818 s");
  EXPECT_LT(exercise.figures[1].measure(), exercise.figures[0].measure());
}

TEST(CourseSchedule, AnUnsolvedExerciseSaysWhatToWrite) {
  expect_wrong(schedule_exercise(exercise::next_gradient, exercise::next_weights),
               "residual network, 2 workers", "next_gradient() is not written yet");
}

TEST(CourseSchedule, TheSemaphoreItselfIsNotBetter) {
  expect_wrong(schedule_exercise(queued_semaphore, queued_semaphore), "residual network, 2 workers",
               "a step takes 1.018 s; it may take 0.9876 s, 3 % less than");
}

TEST(CourseSchedule, ARuleForGradientsMayBePoorForWeights) {
  expect_wrong(schedule_exercise(longest_wait, longest_wait), "large linear layers, 2 workers",
               "a step takes 3.339 s");
  expect_wrong(schedule_exercise(lowest_tensor, lowest_tensor), "large linear layers, 2 workers",
               "no schedule takes less than 1.8 s");
}

TEST(CourseSchedule, NumbersThatDoNotWaitAndLoopsAreReported) {
  expect_wrong(schedule_exercise(queued_semaphore, beyond), "residual network, 2 workers",
               "next_weights() returned 2, but 2 transfers wait, numbered from 0");
  expect_wrong(schedule_exercise(for_ever, queued_semaphore), "residual network, 2 workers",
               "within");
}

}  // namespace
}  // namespace duplex::course
