// Compares with tools/prediction/equations.cpp, and measures by duplex simulate.
#include "course/08_schedules/check.h"

#include <algorithm>
#include <vector>

#include "course/harness/scalars.h"
#include "course/measuring/program.h"
#include "tools/prediction/equations.h"

namespace duplex::course {
namespace {

using tools::Costs;

/// Compares a schedule with its equation, for some workers, links and networks.
std::string complaint_of(const std::string& name, double (*solution)(int, double, double),
                         double (*equation)(const Costs&, double)) {
  for (const int workers : {1, 2, 3, 8, 100})
    for (const Costs& costs :
         {Costs{1.0, 0.0}, Costs{0.0, 1.0}, Costs{0.033, 0.758}, Costs{5.153, 0.719}})
      if (const std::string complaint = complaint_of_number(
              name, [&] { return solution(workers, costs.comm, costs.grad); },
              equation(costs, workers), 1e-9);
          !complaint.empty())
        return complaint + ", for " + std::to_string(workers) + " workers, comm " +
               number_text(costs.comm) + ", grad " + number_text(costs.grad);
  return "";
}

/// The seconds of a batch by sync split.
double split_seconds(const Costs& costs, int workers) {
  return tools::sync_central_worst({costs.comm, costs.grad / workers}, workers);
}

std::string complaint_of_peak(const Schedules& solution, int most, const Costs& costs) {
  int best = 1;
  for (int workers = 2; workers <= most; ++workers)
    if (split_seconds(costs, workers) < split_seconds(costs, best)) best = workers;
  const std::string complaint = complaint_of_number(
      "peak_of_split", [&] { return solution.peak_of_split(most, costs.comm, costs.grad); }, best);
  return complaint.empty()
             ? ""
             : complaint + ", for at most " + std::to_string(most) + " workers, comm " +
                   number_text(costs.comm) + ", grad " + number_text(costs.grad);
}

// SqueezeNet in Table 6.1.
constexpr Costs squeezenet{0.033, 0.758};

/// Simulates SqueezeNet by sync split, strictly in order. Returns the seconds of a batch with 1, 2,
/// ... 8 workers.
std::vector<double> simulated_seconds(const std::string& server) {
  std::vector<double> seconds;
  for (const double speedup : numbers_of(
           output_of({"simulate", "--net", "squeezenet", "--workers", "8", "--server", server,
                      "--sync", "split", "--t-grad", number_text(squeezenet.grad), "--t-comm",
                      number_text(squeezenet.comm), "--overlap", "off", "--output", "csv"})))
    seconds.push_back(squeezenet.grad / speedup);
  return seconds;
}

double simulated_peak() {
  const std::vector<double> seconds = simulated_seconds("central");
  return static_cast<double>(std::min_element(seconds.begin(), seconds.end()) - seconds.begin() +
                             1);
}

}  // namespace

Exercise schedules_exercise(const Schedules& solution) {
  Exercise exercise;
  exercise.folder = "08_schedules";
  exercise.file = "schedules.cpp";
  exercise.check = [solution] {
    const auto peak = [solution](int most, const Costs& costs) {
      return [=] { return complaint_of_peak(solution, most, costs); };
    };
    return check_cases({
        {"the best schedule of a central server (4.4)",
         [=] {
           return complaint_of("central_best", solution.central_best, tools::sync_central_best);
         }},
        {"its worst schedule (4.7)",
         [=] {
           return complaint_of("central_worst", solution.central_worst, tools::sync_central_worst);
         }},
        {"a distributed server (4.12)",
         [=] {
           return complaint_of("distributed", solution.distributed, tools::sync_distributed);
         }},
        {"the peak of split for SqueezeNet", peak(8, squeezenet)},
        {"a peak that lies beyond the most workers", peak(2, squeezenet)},
        {"a network that one machine trains best", peak(8, {5.153, 0.719})},
        {"a link that takes no time", peak(16, {0.0, 1.0})},
        {"two numbers of workers that are equally fast", peak(8, {1.0, 4.0})},
    });
  };
  exercise.known = [] {
    return std::string("Table 6.1 has t_grad 0.758 s and t_comm 0.033 s of SqueezeNet");
  };
  exercise.figures = {
      {"peak",
       "number of workers with which SqueezeNet's split is fastest on a central server, of 1 to 8",
       "The worst schedule gives it exactly.", simulated_peak},
      {"central_4", "seconds of a batch by split with 4 workers and a central server",
       "The worst schedule comes within 2 %.", [] { return simulated_seconds("central").at(3); }},
      {"distributed_4", "seconds of a batch by split with 4 workers and a distributed server",
       "The equation comes within 10 %.", [] { return simulated_seconds("distributed").at(3); }},
  };
  return exercise;
}

}  // namespace duplex::course
