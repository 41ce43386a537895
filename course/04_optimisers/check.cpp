// Compares with core/optimiser.cpp, and measures what becomes of a training in which every worker
// has a state of its own.
#include "course/04_optimisers/check.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/error.h"
#include "core/optimiser.h"
#include "course/harness/values.h"

namespace duplex::course {
namespace {

constexpr std::size_t count = 1000;
constexpr float momentum = 0.9F;

/// The weights and the state of an optimiser, in memory that notices what is written beside it.
struct Trained {
  explicit Trained(const std::string& first_name)
      : weights("weights", count, 0.0F), first(first_name, count, 0.0F), second("v", count, 0.0F) {}
  Guarded weights, first, second;
};

/// Returns values between a tenth of `scale` and `scale`, of both signs.
std::vector<float> gradient_of(int step, float scale, std::uint64_t seed = 20) {
  std::vector<float> gradient = random_values(count, seed + static_cast<std::uint64_t>(step));
  for (float& value : gradient) value = scale * (0.9F * value + std::copysign(0.1F, value));
  return gradient;
}

/// Runs one step of the student's function in a child. Returns a complaint.
using Step = std::function<std::string(int step, Trained& trained, Guarded& gradient)>;

Step momentum_of(MomentumStep* solution, float rate) {
  return [=](int, Trained& t, Guarded& gradient) {
    return complaint_of_call("momentum_step", {&t.weights, &gradient, &t.first}, [&] {
      solution(rate, momentum, count, t.weights.data(), gradient.data(), t.first.data());
    });
  };
}

Step adam_of(AdamStep* solution, float rate) {
  return [=](int step, Trained& t, Guarded& gradient) {
    return complaint_of_call("adam_step", {&t.weights, &gradient, &t.first, &t.second}, [&] {
      const exercise::AdamSettings settings{rate};
      solution(settings, static_cast<std::uint64_t>(step), count, t.weights.data(), gradient.data(),
               t.first.data(), t.second.data());
    });
  };
}

/// Trains by the student's function and by core/optimiser.cpp, and compares weights and state
/// after every step.
std::string complaint_of(const Step& run, OptimiserKind kind, int steps, float scale) {
  OptimiserStep step;
  step.spec.kind = kind;
  step.spec.momentum = kind == OptimiserKind::sgd ? momentum : 0.0F;
  step.rate = 0.1F;
  Trained trained(kind == OptimiserKind::adam ? "m" : "velocity");
  std::vector<float> w(count), m(count), v(count);
  float* state[] = {m.data(), v.data()};
  for (int i = 1; i <= steps; ++i) {
    Guarded gradient("gradient", gradient_of(i, scale));
    gradient.seal();
    if (const std::string complaint = run(i, trained, gradient); !complaint.empty())
      return complaint;
    step.number = static_cast<std::uint64_t>(i);
    update(step, count, w.data(), gradient.data(), state);
    const auto compare = [i](const Guarded& got, const std::string& name,
                             const std::vector<float>& expected) {
      return complaint_of_values(got.data(), expected, 1e-5F, [&](std::size_t at) {
        return "after step " + std::to_string(i) + ", " + element(name, at, {count});
      });
    };
    const bool adam = kind == OptimiserKind::adam;
    for (const std::string& complaint : {compare(trained.first, adam ? "m" : "velocity", m),
                                         adam ? compare(trained.second, "v", v) : std::string(),
                                         compare(trained.weights, "weights", w)})
      if (!complaint.empty()) return complaint;
  }
  return "";
}

/// Two workers train for 20 steps: once with a server, which has one state and the mean of their
/// gradients, and once with a state each, after which the means of their weights are taken in every
/// step. Returns the largest difference between the weights, over the largest weight.
double difference_of_states(const Step& run) {
  Trained server("m"), workers[]{Trained("m"), Trained("m")};
  for (int i = 1; i <= 20; ++i) {
    std::vector<float> gradients[] = {gradient_of(i, 1.0F, 100), gradient_of(i, 1.0F, 200)};
    Guarded mean("gradient", count, 0.0F);
    for (std::size_t at = 0; at < count; ++at)
      mean.data()[at] = 0.5F * (gradients[0][at] + gradients[1][at]);
    Guarded first("gradient", gradients[0]), second("gradient", gradients[1]);
    for (const std::string& complaint :
         {run(i, server, mean), run(i, workers[0], first), run(i, workers[1], second)})
      if (!complaint.empty()) throw Error(complaint);
    for (std::size_t at = 0; at < count; ++at) {
      float* const both[] = {workers[0].weights.data() + at, workers[1].weights.data() + at};
      *both[0] = *both[1] = 0.5F * (*both[0] + *both[1]);
    }
  }
  double largest = 0.0, difference = 0.0;
  for (std::size_t at = 0; at < count; ++at) {
    const auto one = static_cast<double>(server.weights.data()[at]);
    largest = std::max(largest, std::fabs(one));
    difference =
        std::max(difference, std::fabs(one - static_cast<double>(workers[0].weights.data()[at])));
  }
  return difference / largest;
}

}  // namespace

Exercise optimisers_exercise(MomentumStep* momentum_solution, AdamStep* adam_solution) {
  Exercise exercise;
  exercise.folder = "04_optimisers";
  exercise.file = "optimisers.cpp";
  constexpr float rate = 0.1F;
  exercise.check = [=] {
    const auto sgd = [=](int steps, float scale) {
      return [=] {
        return complaint_of(momentum_of(momentum_solution, rate), OptimiserKind::sgd, steps, scale);
      };
    };
    const auto adam = [=](int steps, float scale) {
      return [=] {
        return complaint_of(adam_of(adam_solution, rate), OptimiserKind::adam, steps, scale);
      };
    };
    return check_cases({
        {"one step of momentum, with a velocity of 0", sgd(1, 1.0F)},
        {"four steps of momentum", sgd(4, 1.0F)},
        {"one step of Adam", adam(1, 1.0F)},
        {"six steps of Adam", adam(6, 1.0F)},
        {"Adam with gradients of 1e-8, where epsilon counts", adam(3, 1e-8F)},
        {"Adam with gradients of 0", adam(2, 0.0F)},
    });
  };
  exercise.figures = {
      {"adam_megabytes",
       "megabytes (1e6 bytes) of Adam's state for the 143,667,240 parameters of VGG16E, float32",
       "A right size is exact.",
       [] {
         OptimiserSpec spec;
         spec.kind = OptimiserKind::adam;
         return spec.states() * 143667240 * sizeof(float) * 1e-6;
       }},
      {"momentum_difference",
       "largest difference of the weights, over the largest weight, between one state at a server "
       "and one at each of two workers, "
       "after 20 steps of momentum",
       "Is it 0 but for rounding (1e-7), or not? That is the prediction.",
       [=] { return difference_of_states(momentum_of(momentum_solution, rate)); }, 1e-5},
      {"adam_difference", "the same difference, after 20 steps of Adam",
       "Is it 0 but for rounding (1e-7), or not? That is the prediction.",
       [=] { return difference_of_states(adam_of(adam_solution, rate)); }, 1e-5},
  };
  return exercise;
}

}  // namespace duplex::course
