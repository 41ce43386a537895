// Plants errors into the gradient of a small network. The true gradient is a numeric derivative in
// double, whose error is a millionth of that in float32.
#include "course/03_gradient_check/check.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <vector>

#include "core/error.h"
#include "course/harness/values.h"

namespace duplex::course {
namespace {

constexpr std::size_t samples = 8, inputs = 5, hidden = 6, classes = 3;
constexpr std::size_t weight_count = hidden * (inputs + 1) + classes * (hidden + 1);
// Each case tries eight networks.
constexpr std::uint64_t first_seed = 10, last_seed = 18;

/// Two linear layers (2.2) with a sigmoid (2.4) between them, softmax (2.13) and cross-entropy, the
/// mean over the samples. Each neuron's weights are followed by its bias.
template <typename Real>
Real loss_of(const Real* w, const std::vector<float>& x) {
  Real sum = 0;
  for (std::size_t n = 0; n < samples; ++n) {
    Real inner[hidden], outer[classes], total = 0;
    for (std::size_t h = 0; h < hidden; ++h) {
      const Real* row = w + h * (inputs + 1);
      Real z = row[inputs];
      for (std::size_t i = 0; i < inputs; ++i) z += row[i] * static_cast<Real>(x[n * inputs + i]);
      inner[h] = 1 / (1 + std::exp(-z));
    }
    for (std::size_t c = 0; c < classes; ++c) {
      const Real* row = w + hidden * (inputs + 1) + c * (hidden + 1);
      outer[c] = row[hidden];
      for (std::size_t h = 0; h < hidden; ++h) outer[c] += row[h] * inner[h];
      total += std::exp(outer[c]);
    }
    sum -= outer[n % classes] - std::log(total);
  }
  return sum / static_cast<Real>(samples);
}

/// A network with random weights, its data, and its gradient.
struct Problem {
  explicit Problem(std::uint64_t seed)
      : weights(random_values(weight_count, seed)), x(random_values(samples * inputs, seed + 1)) {
    constexpr double step = 1e-5;
    std::vector<double> w(weights.begin(), weights.end());
    for (std::size_t i = 0; i < weight_count; ++i) {
      const double before = w[i];
      w[i] = before + step;
      const double above = loss_of(w.data(), x);
      w[i] = before - step;
      const double below = loss_of(w.data(), x);
      w[i] = before;
      gradient.push_back(static_cast<float>((above - below) / (2.0 * step)));
    }
  }
  /// Returns the smallest element that has at least `part` of the largest one's size.
  std::size_t element_of_size(float part) const {
    std::size_t smallest = element_beyond(0);
    for (std::size_t i = 0; i < gradient.size(); ++i)
      if (size(i) >= part * largest() && size(i) < size(smallest)) smallest = i;
    return smallest;
  }
  /// Returns the largest element where `from` is 0, else one from there on that may be wrong.
  std::size_t element_beyond(std::size_t from) const {
    if (from == 0)
      return static_cast<std::size_t>(
          std::max_element(gradient.begin(), gradient.end(),
                           [](float a, float b) { return std::fabs(a) < std::fabs(b); }) -
          gradient.begin());
    while (size(from % weight_count) < 0.011F * largest()) ++from;
    return from % weight_count;
  }
  float size(std::size_t i) const { return std::fabs(gradient[i]); }
  float largest() const { return size(element_beyond(0)); }
  std::vector<float> weights, x, gradient;
};

/// This is what a call of the student's function gave.
struct Answer {
  std::string complaint;
  std::ptrdiff_t index = 0;
  double evaluations = 0.0;
};

Answer answer_of(FindWrong* solution, const Problem& problem, const std::vector<float>& gradient) {
  Guarded weights("weights", problem.weights), claimed("gradient", gradient);
  Guarded result("result", 2, 0.0F);
  claimed.seal();
  Answer answer;
  answer.complaint = complaint_of_call("find_wrong", {&weights, &claimed}, [&] {
    const exercise::Loss loss = [&](const float* w) {
      result.data()[1] += 1.0F;
      return loss_of(w, problem.x);
    };
    result.data()[0] =
        static_cast<float>(solution(loss, weight_count, weights.data(), claimed.data()));
  });
  for (std::size_t i = 0; i < weight_count && answer.complaint.empty(); ++i)
    if (std::memcmp(&weights.data()[i], &problem.weights[i], sizeof(float)) != 0)
      answer.complaint = "find_wrong() changed weights[" + std::to_string(i) + "]: it was " +
                         number_text(static_cast<double>(problem.weights[i]), 9) + ", and is " +
                         number_text(static_cast<double>(weights.data()[i]), 9) + " now";
  answer.index = static_cast<std::ptrdiff_t>(result.data()[0]);
  answer.evaluations = static_cast<double>(result.data()[1]);
  return answer;
}

std::string in_words(std::ptrdiff_t index) {
  return index < 0 ? std::to_string(index) + " (none is wrong)" : std::to_string(index);
}

/// Returns a complaint about a number that is not the one that was planted.
std::string complaint_of_index(const Problem& problem, const std::vector<float>& gradient,
                               std::ptrdiff_t got, std::ptrdiff_t expected) {
  const std::string returned =
      "find_wrong() returned " + in_words(got) + ", expected " + in_words(expected);
  const std::ptrdiff_t named = expected >= 0 ? expected : got;
  if (named < 0 || named >= static_cast<std::ptrdiff_t>(weight_count)) return returned;
  const auto at = static_cast<std::size_t>(named);
  return returned + "; element " + std::to_string(named) + " is given as " +
         number_text(static_cast<double>(gradient[at])) + ", and its true value is " +
         number_text(static_cast<double>(problem.gradient[at]));
}

/// Says which element of a problem is to be wrong.
using Where = std::function<std::size_t(const Problem& problem, std::uint64_t seed)>;

/// Multiplies an element by `factor`, in each of the networks. With a factor of 1 none is wrong.
std::string complaint_of(FindWrong* solution, const Where& where, float factor) {
  for (std::uint64_t seed = first_seed; seed < last_seed; ++seed) {
    const Problem problem(seed);
    const std::size_t planted = where(problem, seed);
    std::vector<float> gradient = problem.gradient;
    gradient[planted] *= factor;
    const Answer answer = answer_of(solution, problem, gradient);
    if (!answer.complaint.empty()) return answer.complaint;
    const std::ptrdiff_t expected = factor == 1.0F ? -1 : static_cast<std::ptrdiff_t>(planted);
    if (answer.index != expected)
      return complaint_of_index(problem, gradient, answer.index, expected);
  }
  return "";
}

/// Returns which of some steps gives central differences in float32 the least error, in the mean
/// over all weights.
double best_step() {
  double best = 0.0, least = 1e30;
  // Each step is the fourth root of ten, 1.8, times smaller than the one before.
  for (int power = 2; power <= 24; ++power) {
    const double step = std::pow(10.0, -power / 4.0);
    double error = 0.0;
    for (std::uint64_t seed = first_seed; seed < last_seed; ++seed) {
      const Problem problem(seed);
      std::vector<float> w = problem.weights;
      for (std::size_t i = 0; i < weight_count; ++i) {
        const float before = w[i];
        w[i] = before + static_cast<float>(step);
        const float above_at = w[i], above = loss_of(w.data(), problem.x);
        w[i] = before - static_cast<float>(step);
        const float width = above_at - w[i], below = loss_of(w.data(), problem.x);
        w[i] = before;
        error += std::fabs(static_cast<double>((above - below) / width - problem.gradient[i]));
      }
    }
    if (error < least) {
      least = error;
      best = step;
    }
  }
  return best;
}

}  // namespace

Exercise gradient_check_exercise(FindWrong* solution) {
  Exercise exercise;
  exercise.folder = "03_gradient_check";
  exercise.file = "gradient_check.cpp";
  exercise.check = [solution] {
    const auto tries = [solution](float size, float factor) {
      const Where where = [size](const Problem& problem, std::uint64_t) {
        return problem.element_of_size(size);
      };
      return [=] { return complaint_of(solution, where, factor); };
    };
    const Where anywhere = [](const Problem& problem, std::uint64_t seed) {
      return problem.element_beyond(7 * seed);
    };
    return check_cases({
        {"the largest element has the wrong sign", tries(1.0F, -1.0F)},
        {"no element is wrong", tries(1.0F, 1.0F)},
        {"an element is twice as large as it should be", tries(0.3F, 2.0F)},
        {"an element is 0", tries(0.3F, 0.0F)},
        {"an element is larger by 12 %", tries(0.7F, 1.12F)},
        {"an element of a hundredth of the largest has the wrong sign", tries(0.011F, -1.0F)},
        {"an element of a twentieth of the largest is larger by 12 %", tries(0.05F, 1.12F)},
        {"an element anywhere is larger by a fifth",
         [=] { return complaint_of(solution, anywhere, 1.2F); }},
    });
  };
  exercise.known = [] {
    double loss = 0.0, largest = 0.0;
    for (std::uint64_t seed = first_seed; seed < last_seed; ++seed) {
      const Problem problem(seed);
      loss += static_cast<double>(loss_of(problem.weights.data(), problem.x)) / 8;
      largest += static_cast<double>(problem.largest()) / 8;
    }
    return "each of eight networks has " + std::to_string(weight_count) +
           " weights; in the mean the loss is " + number_text(loss, 2) +
           ", and the largest element of the gradient " + number_text(largest, 2);
  };
  exercise.figures = {
      {"evaluations",
       "evaluations of the loss by one call of your find_wrong(), where no element is wrong",
       "A right count is exact.",
       [solution] {
         const Problem problem(10);
         const Answer answer = answer_of(solution, problem, problem.gradient);
         if (!answer.complaint.empty()) throw Error(answer.complaint);
         return answer.evaluations;
       }},
      {"best_step", "step of a central difference in float32 that has the least error here",
       "The page's formula comes within a factor of four.", best_step},
  };
  return exercise;
}

}  // namespace duplex::course
