#include "tools/scenario/result.h"

#include <utility>

#include "tools/plan/schedule.h"

namespace duplex::tools {

double batches_of(const simulation::Spec& spec) {
  const auto steps = static_cast<double>(spec.steps);
  if (spec.sync == net::Sync::split) return steps;
  double slots = 0.0;
  for (std::size_t worker = 0; worker < spec.part.size(); ++worker) slots += spec.slots_of(worker);
  return steps * slots;
}

double speedup_of(const simulation::Spec& spec, const simulation::Outcome& outcome, double grad) {
  return batches_of(spec) * grad / outcome.trained;
}

TrainingResult result_of(const std::vector<simulation::StepTimes>& steps) {
  TrainingResult result;
  std::vector<double> gradient, total, await;
  Schedule schedule;
  schedule.steps = steps.size();
  for (std::size_t step = schedule.warm_up(); step < steps.size(); ++step) {
    gradient.push_back(steps[step].computing);
    total.push_back(steps[step].end - steps[step].begin);
    await.push_back(steps[step].awaiting);
  }
  result.steps = steps.size();
  result.seconds = steps.empty() ? 0.0 : steps.back().end;
  result.push = result.data = quartiles_of(std::vector<double>(total.size(), 0.0));
  result.gradient = quartiles_of(std::move(gradient));
  result.total = quartiles_of(std::move(total));
  result.await = quartiles_of(std::move(await));
  return result;
}

}  // namespace duplex::tools
