#include "tools/report/thesis/statements.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "models/registry.h"
#include "tools/prediction/layer_times.h"
#include "tools/scenario/scenario.h"
#include "tools/text/quartiles.h"
#include "tools/text/table.h"

namespace duplex::tools::reports {
namespace {

using net::ServerMode;
using net::Sync;

/// A stated speedup counts as confirmed within so much of it.
constexpr double close = 0.10;

/// Two speedups are called equal if one is at least this part of the other.
constexpr double equal = 0.99;

const ThesisFigure& figure_of(const std::string& number) {
  const auto found =
      std::find_if(chapter_6().begin(), chapter_6().end(),
                   [&](const ThesisFigure& figure) { return number == figure.number; });
  if (found == chapter_6().end())
    throw Error("points.jsonl has a point of figure " + number + ", which chapter 6 does not have");
  return *found;
}

/// The lab's in the thesis's order, or else the simulation's; with what it is.
std::optional<std::pair<double, std::string>> reached(const Thesis& thesis,
                                                      const std::string& figure, ServerMode server,
                                                      int workers) {
  const ThesisPoint* point = thesis.point(figure, server, workers);
  if (point == nullptr) return std::nullopt;
  if (point->lab) return std::pair{point->lab->speedup, std::string("on the lab")};
  if (point->simulated) return std::pair{*point->simulated, std::string("simulated")};
  return std::nullopt;
}

std::string overlap_text(const Thesis& thesis, const std::string& figure, ServerMode server,
                         int workers) {
  const ThesisPoint* point = thesis.point(figure, server, workers);
  if (point == nullptr) return "";
  if (point->lab_overlap)
    return "; with overlap " + fixed(point->lab_overlap->speedup, 2) + " on the lab";
  if (point->simulated_overlap)
    return "; with overlap " + fixed(*point->simulated_overlap, 2) + " simulated";
  return "";
}

Verdict never_above_1(const Thesis& thesis) {
  Verdict verdict{"6.1, 6.8", "VGG16E: never faster than one machine", "", Verdict::open};
  double most = 0.0;
  std::string where;
  for (const char* figure : {"6.1", "6.8"}) {
    for (const ServerMode server : {ServerMode::central, ServerMode::distributed}) {
      for (int n = 2; n <= 4; ++n) {
        const auto found = reached(thesis, figure, server, n);
        if (!found || found->first <= most) continue;
        most = found->first;
        where = std::string(figure) + ", " + net::name_of(server) + ", N = " + std::to_string(n) +
                ", " + found->second + overlap_text(thesis, figure, server, n);
      }
    }
  }
  if (where.empty()) return verdict;
  verdict.found = "at most " + fixed(most, 2) + " (" + where + ")";
  verdict.outcome = most <= 1.0 ? Verdict::confirmed : Verdict::refuted;
  return verdict;
}

/// In the thesis's order, with its own t_comm.
double with_its_own_costs(const ThesisFigure& figure, ServerMode server, int workers) {
  const ThesisNetwork& network = thesis_network(figure.network);
  models::ModelOptions options;
  options.classes = 256;  // Caltech256's.
  const Model model = models::build(figure.network, options);
  SimulationRequest request;
  request.workers = workers;
  request.parallel.sync = figure.sync;
  request.parallel.server = server;
  request.parallel.shards = net::Shards::tensors;
  request.parallel.overlap = false;
  Scenario scenario =
      Scenario::with_comm(model, share_out(network.costs.grad, model), network.costs.comm);
  scenario.batch = 840;  // 1 to 8 workers share it evenly.
  return simulated_speedup(request, scenario, 16);
}

Verdict stated(const Thesis& thesis, const char* figure, const std::string& what, double speedup) {
  Verdict verdict{figure, what + ", distributed, N = 8: " + fixed(speedup, 1), "", Verdict::open};
  const auto found = reached(thesis, figure, ServerMode::distributed, 8);
  if (!found) return verdict;
  const bool near = std::abs(found->first / speedup - 1.0) <= close;
  verdict.found = (near                     ? ""
                   : found->first > speedup ? "more: "
                                            : "less: ") +
                  fixed(found->first, 2) + " " + found->second + ", " +
                  fixed(with_its_own_costs(figure_of(figure), ServerMode::distributed, 8), 2) +
                  " simulated with Table 6.1's t_comm" +
                  overlap_text(thesis, figure, ServerMode::distributed, 8);
  verdict.outcome = near ? Verdict::confirmed : Verdict::refuted;
  return verdict;
}

/// It compares points of the lab with each other, or simulations with each other.
Verdict split_peaks_at_4(const Thesis& thesis) {
  Verdict verdict{"6.6", "SqueezeNet, split, central: best at N = 4", "", Verdict::open};
  for (const bool lab : {true, false}) {
    std::vector<double> speedups;
    std::string values;
    for (int n = 1; n <= 8; ++n) {
      const ThesisPoint* point = thesis.point("6.6", ServerMode::central, n);
      if (point == nullptr || !(lab ? point->lab.has_value() : point->simulated.has_value())) break;
      speedups.push_back(lab ? point->lab->speedup : *point->simulated);
      values += (n > 1 ? ", " : "") + fixed(speedups.back(), 2);
    }
    if (speedups.size() < 8) continue;
    const auto most = std::max_element(speedups.begin(), speedups.end());
    verdict.found = "best at N = " + std::to_string(most - speedups.begin() + 1) +
                    " (N = 1 to 8: " + values + (lab ? ", on the lab)" : ", simulated)");
    verdict.outcome = speedups[3] >= equal * *most ? Verdict::confirmed : Verdict::refuted;
    break;
  }
  return verdict;
}

Verdict resnet_at_most(const Thesis& thesis) {
  Verdict verdict = stated(thesis, "6.4", "Resnet34, join", 2.1);
  verdict.statement = "Resnet34: at most 2.1 (join, distributed, N = 8)";
  return verdict;
}

Verdict estimates(const Thesis& thesis) {
  Verdict verdict{"6.1-6.4",
                  "Synchronous estimates: accurate for a central server, optimistic for a "
                  "distributed one",
                  "", Verdict::open};
  const PredictionError central = estimate_error(thesis, ServerMode::central, Sync::join),
                        distributed = estimate_error(thesis, ServerMode::distributed, Sync::join);
  if (central.points == 0 || distributed.points == 0) return verdict;
  const auto percent = [](double part) { return fixed(100.0 * part, 1) + "%"; };
  verdict.found = "central: off by " + percent(central.median) +
                  " in the median, distributed: by " + percent(distributed.median) + ", " +
                  percent(distributed.worst) + " at " + distributed.worst_at;
  verdict.outcome = central.median <= close && distributed.worst > central.median
                        ? Verdict::confirmed
                        : Verdict::refuted;
  return verdict;
}

PredictionError error_from(std::vector<std::pair<double, std::string>> errors) {
  PredictionError error;
  error.points = errors.size();
  if (errors.empty()) return error;
  std::sort(errors.begin(), errors.end());
  std::vector<double> values;
  for (const auto& [error, where] : errors) values.push_back(error);
  error.median = quartiles_of(values).median;
  error.worst = errors.back().first;
  error.worst_at = errors.back().second;
  return error;
}

std::string name_of(const std::tuple<std::string, std::string, int>& key) {
  return std::get<0>(key) + ", " + std::get<1>(key) + ", N = " + std::to_string(std::get<2>(key));
}

}  // namespace

bool Verdict::is_of(const std::string& figure) const {
  const auto number = [](const std::string& name) {
    return std::stoi(name.substr(name.find('.') + 1));
  };
  const auto dash = figures.find('-');
  if (dash != std::string::npos)
    return number(figures.substr(0, dash)) <= number(figure) &&
           number(figure) <= number(figures.substr(dash + 1));
  return (", " + figures + ",").find(", " + figure + ",") != std::string::npos;
}

std::string Verdict::text() const {
  switch (outcome) {
    case confirmed:
      return "confirmed";
    case refuted:
      return "not confirmed";
    default:
      return "not measured";
  }
}

double estimated(const Thesis& thesis, const ThesisFigure& figure, ServerMode server, int workers) {
  const auto costs = thesis.costs.find(figure.network);
  const Costs stated = thesis_network(figure.network).costs;
  const double comm = costs == thesis.costs.end() ? stated.comm : costs->second.comm_taken();
  return speedup({comm, stated.grad}, figure.sync, server, workers, thesis_batches);
}

PredictionError prediction_error(const Thesis& thesis, Order order, Runs runs) {
  std::vector<std::pair<double, std::string>> errors;
  const auto compare = [&](const std::optional<double>& simulated,
                           const std::optional<LabResult>& lab, const std::string& name) {
    if (!simulated || !lab || (runs == Runs::undisturbed && lab->disturbed)) return;
    errors.emplace_back(std::abs(*simulated / lab->speedup - 1.0), name);
  };
  for (const auto& [key, point] : thesis.points) {
    if (order != Order::overlap) compare(point.simulated, point.lab, name_of(key));
    if (order != Order::strict)
      compare(point.simulated_overlap, point.lab_overlap, name_of(key) + ", overlap");
  }
  return error_from(std::move(errors));
}

PredictionError estimate_error(const Thesis& thesis, ServerMode server, Sync sync) {
  std::vector<std::pair<double, std::string>> errors;
  for (const auto& [key, point] : thesis.points) {
    const auto& [number, its_server, workers] = key;
    const ThesisFigure& figure = figure_of(number);
    if (!point.lab || figure.sync != sync || its_server != net::name_of(server)) continue;
    const double estimate = estimated(thesis, figure, server, workers);
    errors.emplace_back(std::abs(estimate / point.lab->speedup - 1.0), name_of(key));
  }
  return error_from(std::move(errors));
}

std::vector<Verdict> verdicts(const Thesis& thesis) {
  return {never_above_1(thesis),
          resnet_at_most(thesis),
          stated(thesis, "6.2", "GoogLeNet, join", 4.0),
          stated(thesis, "6.9", "GoogLeNet, asynchronous", 3.9),
          stated(thesis, "6.3", "SqueezeNet, join", 6.5),
          split_peaks_at_4(thesis),
          estimates(thesis)};
}

}  // namespace duplex::tools::reports
