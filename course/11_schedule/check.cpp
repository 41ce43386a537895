// Plays trainings by the student's schedule and by the queued semaphore, and compares.
#include "course/11_schedule/check.h"

#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "core/error.h"
#include "course/harness/guarded.h"

namespace duplex::course {
namespace {

/// A schedule has to be faster than the queued semaphore by this part.
constexpr double better = 0.03;

/// Sixteen layers that compute alike, the last of which have eight times the parameters of the
/// first, as in a Resnet.
CentralTraining residual(std::int32_t workers) {
  CentralTraining training;
  training.workers = workers;
  for (int i = 0; i < 16; ++i) {
    training.comm.push_back(0.004 * (1 + i / 2));
    training.forward.push_back(0.012);
    training.backward.push_back(0.024);
  }
  return training;
}

/// Convolutions that compute long, and three linear layers that have nearly all parameters, as in
/// VGG.
CentralTraining linear_at_the_end(std::int32_t workers) {
  CentralTraining training;
  training.workers = workers;
  training.comm = {0.001, 0.001, 0.001, 0.002, 0.004, 0.008, 0.008, 0.008, 0.017, 0.7, 0.12, 0.03};
  training.forward = {0.015, 0.02, 0.025, 0.015, 0.02,   0.01,
                      0.01,  0.01, 0.01,  0.003, 0.0005, 0.0005};
  for (const double seconds : training.forward) training.backward.push_back(2.0 * seconds);
  return training;
}

/// Twenty layers alike, whose transfers from and to four workers take longer than computing.
CentralTraining equal_layers(std::int32_t workers) {
  CentralTraining training;
  training.workers = workers;
  training.comm.assign(20, 0.005);
  training.forward.assign(20, 0.004);
  training.backward.assign(20, 0.008);
  return training;
}

std::vector<std::pair<std::string, CentralTraining>> trainings() {
  return {{"a residual network, 2 workers", residual(2)},
          {"a residual network, 4 workers", residual(4)},
          {"a network with large linear layers, 2 workers", linear_at_the_end(2)},
          {"a network with large linear layers, 4 workers", linear_at_the_end(4)},
          {"a network of equal layers, 4 workers", equal_layers(4)}};
}

/// Returns the seconds of a step by the student's schedule, or leaves a complaint.
double seconds_of(const CentralTraining& training, NextTransfer* gradient, NextTransfer* weights,
                  std::string* complaint) {
  Guarded result("the result", 2, 0.0F);  // The two halves of a double.
  *complaint = complaint_of_call("next_gradient() or next_weights", {&result}, [&] {
    const double seconds = step_seconds(training, gradient, weights);
    std::memcpy(result.data(), &seconds, sizeof(seconds));
  });
  double seconds = 0.0;
  std::memcpy(&seconds, result.data(), sizeof(seconds));
  return seconds;
}

std::string complaint_of(const CentralTraining& training, NextTransfer* gradient,
                         NextTransfer* weights) {
  std::string complaint;
  const double seconds = seconds_of(training, gradient, weights, &complaint);
  if (!complaint.empty()) return complaint;
  const double semaphore = step_seconds(training, queued_semaphore, queued_semaphore);
  if (seconds <= (1.0 - better) * semaphore) return "";
  return "a step takes " + number_text(seconds, 4) + " s; it may take " +
         number_text((1.0 - better) * semaphore, 4) + " s, 3 % less than the queued semaphore's " +
         number_text(semaphore, 4) + " s; no schedule takes less than " +
         number_text(training.least_seconds(), 4) + " s";
}

double student_seconds(const CentralTraining& training, NextTransfer* gradient,
                       NextTransfer* weights) {
  std::string complaint;
  const double seconds = seconds_of(training, gradient, weights, &complaint);
  if (!complaint.empty()) throw Error(complaint);
  return seconds;
}

}  // namespace

Exercise schedule_exercise(NextTransfer* next_gradient, NextTransfer* next_weights) {
  Exercise exercise;
  exercise.folder = "11_schedule";
  exercise.file = "schedule.cpp";
  exercise.check = [=] {
    const auto plays = [=](const CentralTraining& training) {
      return [=] { return complaint_of(training, next_gradient, next_weights); };
    };
    std::vector<Case> cases;
    for (const auto& [name, training] : trainings()) cases.push_back({name, plays(training)});
    return check_cases(cases);
  };
  exercise.known = [=] {
    std::string text;
    for (const auto& [name, training] : trainings()) {
      const double seconds = student_seconds(training, next_gradient, next_weights);
      const double semaphore = step_seconds(training, queued_semaphore, queued_semaphore);
      text += name + ": " + number_text(seconds, 4) + " s,\n              " +
              number_text(100.0 * (1.0 - seconds / semaphore), 2) +
              " % less than the semaphore's; the bound is " +
              number_text(training.least_seconds(), 4) + " s\n            ";
    }
    const CentralTraining training = residual(4);
    return text + "the residual network has t_comm " + number_text(training.comm_seconds(), 4) +
           " s and t_grad " + number_text(training.grad_seconds(), 4) + " s";
  };
  exercise.figures = {
      {"semaphore_seconds",
       "seconds of a step of the residual network with 4 workers, by the queued semaphore",
       "It lies between N c + g / 3 and (4.4).",
       [] { return step_seconds(residual(4), queued_semaphore, queued_semaphore); }},
      {"your_seconds", "the same by your schedule", "It lies between N c and the figure above.",
       [=] { return student_seconds(residual(4), next_gradient, next_weights); }},
  };
  return exercise;
}

}  // namespace duplex::course
