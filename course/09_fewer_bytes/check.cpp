// Checks what has to hold of a selection, and trains with it.
#include "course/09_fewer_bytes/check.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "core/error.h"
#include "course/09_fewer_bytes/training.h"
#include "course/harness/values.h"

namespace duplex::course {
namespace {

using Floats = std::vector<float>;
constexpr std::int32_t sent = SmallTraining::weights / 100;  // A hundredth.

/// The arrays of a call, as the student's function gets them.
struct Arrays {
  Arrays(const Floats& gradient_values, const Floats& residual_values, std::int32_t keep)
      : gradient("gradient", gradient_values),
        residual("residual", residual_values),
        index("index", std::vector<std::int32_t>(static_cast<std::size_t>(keep), -1).data(),
              static_cast<std::size_t>(keep)),
        value("value", static_cast<std::size_t>(keep), std::numeric_limits<float>::quiet_NaN()) {
    gradient.seal();
  }
  Guarded gradient, residual, index, value;
};

/// Returns a complaint about the numbers of the elements that were chosen: they ascend and exist.
std::string complaint_of_index(const std::vector<std::int32_t>& index, std::size_t count) {
  for (std::size_t k = 0; k < index.size(); ++k) {
    const std::string name = element("index", k, {static_cast<std::int64_t>(index.size())});
    if (index[k] < 0 || static_cast<std::size_t>(index[k]) >= count)
      return name + " is " + std::to_string(index[k]) + ", but there are " + std::to_string(count) +
             " elements";
    if (k > 0 && index[k] <= index[k - 1])
      return name + " is " + std::to_string(index[k]) + ", but the one before is " +
             std::to_string(index[k - 1]) + ": they have to ascend";
  }
  return "";
}

/// Tries one selection. Without `with_residual` the function gets a null pointer.
std::string complaint_of(SelectLargest* solution, const Floats& gradient, const Floats& before,
                         std::int32_t keep, bool with_residual) {
  Arrays a(gradient, before, keep);
  const auto count = static_cast<std::int32_t>(gradient.size());
  const std::string complaint =
      complaint_of_call("select_largest", {&a.gradient, &a.residual, &a.index, &a.value}, [&] {
        solution(count, a.gradient.data(), with_residual ? a.residual.data() : nullptr, keep,
                 reinterpret_cast<std::int32_t*>(a.index.data()), a.value.data());
      });
  if (!complaint.empty()) return complaint;
  std::vector<std::int32_t> index(static_cast<std::size_t>(keep));
  std::memcpy(index.data(), a.index.data(), index.size() * sizeof(index[0]));
  if (const std::string wrong = complaint_of_index(index, gradient.size()); !wrong.empty())
    return wrong;

  Floats left(gradient);
  if (with_residual)
    for (std::size_t i = 0; i < left.size(); ++i) left[i] += before[i];
  Floats chosen;
  float least = std::numeric_limits<float>::infinity(), most_left = 0.0F;
  for (const std::int32_t i : index) {
    float& each = left[static_cast<std::size_t>(i)];
    chosen.push_back(each);
    least = std::min(least, std::fabs(each));
    each = 0.0F;
  }
  for (const float each : left) most_left = std::max(most_left, std::fabs(each));
  if (least < most_left)
    return "an element of magnitude " + number_text(static_cast<double>(least)) +
           " is sent, and one of " + number_text(static_cast<double>(most_left)) + " is not";
  const auto named = [](const std::string& name, std::size_t size) {
    return [=](std::size_t i) { return element(name, i, {static_cast<std::int64_t>(size)}); };
  };
  if (const std::string wrong =
          complaint_of_values(a.value.data(), chosen, 0.0F, named("value", chosen.size()));
      !wrong.empty())
    return wrong;
  return complaint_of_values(a.residual.data(), with_residual ? left : before, 0.0F,
                             named("residual", left.size()));
}

/// Returns the accuracy of a training in which each worker sends a hundredth of its gradient.
double accuracy_with(SelectLargest* solution, bool with_residual) {
  Guarded result("result", 1, 0.0F);
  const Limits limits{std::chrono::seconds(60)};
  const std::string complaint = complaint_of_call(
      "select_largest", {&result},
      [&] {
        std::vector<Floats> residuals(SmallTraining::workers, Floats(SmallTraining::weights));
        const auto sends = [&](std::size_t worker, Floats& gradient) {
          std::vector<std::int32_t> index(static_cast<std::size_t>(sent));
          Floats value(index.size());
          solution(static_cast<std::int32_t>(gradient.size()), gradient.data(),
                   with_residual ? residuals[worker].data() : nullptr, sent, index.data(),
                   value.data());
          std::fill(gradient.begin(), gradient.end(), 0.0F);
          for (std::size_t k = 0; k < index.size(); ++k)
            gradient.at(static_cast<std::size_t>(index[k])) = value[k];
        };
        result.data()[0] = static_cast<float>(SmallTraining().accuracy(sends));
      },
      limits);
  if (!complaint.empty()) throw Error(complaint);
  return static_cast<double>(result.data()[0]);
}

}  // namespace

Exercise fewer_bytes_exercise(SelectLargest* solution) {
  Exercise exercise;
  exercise.folder = "09_fewer_bytes";
  exercise.file = "fewer_bytes.cpp";
  exercise.check = [solution] {
    const auto tries = [solution](const Floats& gradient, const Floats& residual, std::int32_t keep,
                                  bool with_residual) {
      return [=] { return complaint_of(solution, gradient, residual, keep, with_residual); };
    };
    const Floats gradient = random_values(500, 30), residual = random_values(500, 31);
    return check_cases({
        {"the largest of three", tries({0.5F, 2.0F, 1.0F}, Floats(3), 1, false)},
        {"magnitudes, not values", tries({0.5F, -2.0F, 1.0F, -3.0F}, Floats(4), 2, false)},
        {"equal magnitudes", tries({1.0F, -1.0F, 1.0F, 1.0F}, Floats(4), 2, false)},
        {"all of them", tries({1.0F, -1.0F, 0.0F}, Floats(3), 3, false)},
        {"50 of 500", tries(gradient, residual, 50, false)},
        {"a residual, which is added and kept",
         tries({0.5F, -2.0F, 1.0F}, {1.0F, 1.5F, 0.25F}, 1, true)},
        {"5 of 500 with a residual", tries(gradient, residual, 5, true)},
    });
  };
  exercise.known = [] {
    const double accuracy = SmallTraining().accuracy([](std::size_t, Floats&) {});
    return "with whole gradients the small training ends with an accuracy of " +
           number_text(accuracy) + "; it has 4,000 weights, of which 40 are sent";
  };
  exercise.figures = {
      {"bytes_part",
       "bytes of the values and numbers that are sent, over those of the whole gradient",
       "It is exact: an element takes 4 bytes, and its number 4.",
       [] {
         return sent * (sizeof(float) + sizeof(std::int32_t)) /
                static_cast<double>(SmallTraining::weights * sizeof(float));
       }},
      {"accuracy_lost", "accuracy where what is not sent is lost",
       "There is no formula: write what you expect.",
       [solution] { return accuracy_with(solution, false); }},
      {"accuracy_kept", "accuracy where it is kept in a residual",
       "There is no formula: write what you expect.",
       [solution] { return accuracy_with(solution, true); }},
  };
  return exercise;
}

}  // namespace duplex::course
