// Right and wrong servers of exercise 6.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "course/06_central_server/check.h"
#include "course/measuring/program.h"
#include "tests/course/checked.h"

namespace duplex::course {
namespace {

using exercise::Tensor;
using test::expect_right;
using test::expect_wrong;

/// A server with one thing that students get wrong.
enum class Mistake {
  none,
  transposed,   ///< The gradients lie as [count][workers].
  borrowed,     ///< It adds to the gradients that are there.
  no_mark,      ///< A gradient that has come is not marked.
  twice,        ///< A second gradient of a worker replaces the first.
  backwards,    ///< The last worker's gradient is added first.
  sum,          ///< The sum is not made the mean.
  up,           ///< It goes up the gradient.
  not_cleared,  ///< The next step begins with this one's marks.
  no_rate,
};

template <Mistake mistake>
std::int32_t collect(Tensor& tensor, std::int32_t worker, const float* gradient) {
  std::int32_t& mark = tensor.collected[worker];
  if (mark != 0 && mistake != Mistake::twice) return -1;
  for (std::int32_t i = 0; i < tensor.count; ++i) {
    float& place = mistake == Mistake::transposed ? tensor.gradients[i * tensor.workers + worker]
                                                  : tensor.gradients[worker * tensor.count + i];
    place = mistake == Mistake::borrowed ? place + gradient[i] : gradient[i];
  }
  if (mistake != Mistake::no_mark) mark = 1;
  std::int32_t missing = 0;
  for (std::int32_t each = 0; each < tensor.workers; ++each)
    missing += tensor.collected[each] == 0 ? 1 : 0;
  return missing;
}

template <Mistake mistake>
void average(const Tensor& tensor, float* mean) {
  for (std::int32_t i = 0; i < tensor.count; ++i) {
    float sum = 0.0F;
    for (std::int32_t k = 0; k < tensor.workers; ++k) {
      const std::int32_t worker = mistake == Mistake::backwards ? tensor.workers - 1 - k : k;
      sum += tensor.gradients[worker * tensor.count + i];
    }
    mean[i] = mistake == Mistake::sum ? sum : sum / static_cast<float>(tensor.workers);
  }
}

template <Mistake mistake>
void publish(Tensor& tensor, const float* mean, float rate) {
  const float factor =
      (mistake == Mistake::up ? -1.0F : 1.0F) * (mistake == Mistake::no_rate ? 1.0F : rate);
  for (std::int32_t i = 0; i < tensor.count; ++i) tensor.weights[i] -= factor * mean[i];
  if (mistake != Mistake::not_cleared)
    for (std::int32_t k = 0; k < tensor.workers; ++k) tensor.collected[k] = 0;
}

/// In dist a right server runs.
std::string program() {
  return std::filesystem::read_symlink("/proc/self/exe").string() + ".duplex";
}

template <Mistake mistake>
Exercise with() {
  return central_server_exercise(collect<mistake>, average<mistake>, publish<mistake>, program());
}

TEST(CourseCentralServer, SumsInTheOrderOfWorkersAreRight) {
  const Exercise exercise = with<Mistake::none>();
  expect_right(exercise);
  EXPECT_NEAR(exercise.figures[0].measure(), 2 * 431080 * 4e-6, 0.01);
}

TEST(CourseCentralServer, AnUnsolvedExerciseSaysWhatToWrite) {
  expect_wrong(
      central_server_exercise(exercise::collect, exercise::average, exercise::publish, program()),
      "one worker's gradient", "collect() is not written yet");
}

TEST(CourseCentralServer, GradientsHaveTheirPlaces) {
  expect_wrong(with<Mistake::transposed>(), "two workers' gradients", "gradients[0][1] is");
  expect_wrong(with<Mistake::borrowed>(), "one worker's gradient", "gradients[0][0] is");
}

TEST(CourseCentralServer, EachCountsOnce) {
  expect_wrong(with<Mistake::no_mark>(), "one worker's gradient",
               "collect() of worker 0 returned 1, expected 0");
  expect_wrong(with<Mistake::twice>(), "comes twice",
               "collect() of worker 1 returned 1, expected -1");
}

TEST(CourseCentralServer, TheMeanIsInTheOrderOfWorkers) {
  expect_wrong(with<Mistake::sum>(), "the mean of two", "mean[0] is 4, expected 2");
  expect_wrong(with<Mistake::backwards>(), "the order in which three are added", "mean[1] is 0.33");
}

TEST(CourseCentralServer, TheNextStepBeginsAnew) {
  expect_wrong(with<Mistake::not_cleared>(), "new weights", "collected[0] is 1 after publish()");
  expect_wrong(with<Mistake::up>(), "new weights", "weights[0] is 3.5, expected -1.5");
  expect_wrong(with<Mistake::no_rate>(), "new weights", "weights[0] is -9, expected -1.5");
}

TEST(CourseCentralServer, AProgramThatFailsIsAComplaint) {
  const Exercise exercise = central_server_exercise(collect<Mistake::none>, average<Mistake::none>,
                                                    publish<Mistake::none>, "/bin/false");
  expect_wrong(exercise, "dist with your server", "/bin/false launch failed");
}

}  // namespace
}  // namespace duplex::course
