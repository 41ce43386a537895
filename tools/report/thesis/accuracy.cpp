#include "tools/report/thesis/accuracy.h"

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>

#include "models/registry.h"
#include "tools/text/quartiles.h"

namespace duplex::tools::reports {
namespace {

using net::ServerMode;
using net::Sync;

/// A prediction's part of the truth, less 1, and where that is.
using Errors = std::vector<std::pair<double, std::string>>;

PredictionError error_from(const Errors& errors) {
  PredictionError error;
  error.points = errors.size();
  if (errors.empty()) return error;
  std::vector<double> sizes;
  for (const auto& [off, where] : errors) {
    error.high += off > 0.0 ? 1U : 0U;
    sizes.push_back(std::abs(off));
    if (sizes.back() < error.worst) continue;
    error.worst = sizes.back();
    error.worst_at = where;
  }
  error.median = quartiles_of(std::move(sizes)).median;
  return error;
}

std::string name_of(const std::tuple<std::string, std::string, int>& key) {
  return "figure " + std::get<0>(key) + ", " + std::get<1>(key) +
         ", N = " + std::to_string(std::get<2>(key));
}

/// t_comm of this machine, or the thesis's, and t_grad of Table 6.1.
Costs costs_of(const Thesis& thesis, const ThesisFigure& figure) {
  const auto here = thesis.costs.find(figure.network);
  const Costs stated = thesis_network(figure.network).costs;
  return {here == thesis.costs.end() ? stated.comm : here->second.comm_taken(), stated.grad};
}

/// How much the busiest of N links moves in one direction while all owners send their parts, as a
/// part of all weights: with equal parts (N - 1) / N.
double busiest_link(const std::string& network, int workers) {
  models::ModelOptions options;
  options.classes = caltech_classes;
  std::vector<std::size_t> counts;
  for (const ParameterSpec& parameter : models::build(network, options).trained())
    counts.push_back(static_cast<std::size_t>(parameter.shape.elements()));
  const net::ShardMap map = net::ShardMap::distributed(counts, workers, net::Shards::tensors);
  double most = 0.0;
  for (int owner = 0; owner < workers; ++owner) {
    const double part =
        static_cast<double>(map.elements_of(owner)) / static_cast<double>(map.elements());
    most = std::max({most, part * (workers - 1), 1.0 - part});
  }
  return most;
}

/// As estimated(), with the parts of Algorithm 3.7 where (4.12) and (4.21) have equal ones.
double estimated_as_dealt(const Thesis& thesis, const ThesisFigure& figure, int workers) {
  Costs costs = costs_of(thesis, figure);
  if (workers > 1) costs.comm *= busiest_link(figure.network, workers) * workers / (workers - 1);
  return speedup(costs, figure.sync, ServerMode::distributed, workers, thesis_batches);
}

}  // namespace

double estimated(const Thesis& thesis, const ThesisFigure& figure, ServerMode server, int workers) {
  return speedup(costs_of(thesis, figure), figure.sync, server, workers, thesis_batches);
}

std::optional<Interval> estimated_between(const Thesis& thesis, const ThesisFigure& figure,
                                          ServerMode server, int workers) {
  return speedup_between(costs_of(thesis, figure), figure.sync, server, workers, thesis_batches);
}

double estimated_by_table_6_1(const ThesisFigure& figure, ServerMode server, int workers) {
  return speedup(thesis_network(figure.network).costs, figure.sync, server, workers,
                 thesis_batches);
}

PredictionError prediction_error(const Thesis& thesis, const std::vector<Order>& orders,
                                 Runs runs) {
  Errors errors;
  for (const auto& [key, point] : thesis.points) {
    for (const Order order : orders) {
      const bool overlap = order == Order::overlap;
      const auto& simulated = overlap ? point.simulated_overlap : point.simulated;
      const auto& lab = overlap ? point.lab_overlap : point.lab;
      if (!simulated || !lab || (runs == Runs::undisturbed && lab->disturbed)) continue;
      errors.emplace_back(*simulated / lab->speedup - 1.0,
                          name_of(key) + (overlap ? ", overlap" : ""));
    }
  }
  return error_from(errors);
}

PredictionError estimate_error(const Thesis& thesis, ServerMode server, Sync sync, Parts parts) {
  Errors errors;
  for (const auto& [key, point] : thesis.points) {
    const auto& [number, its_server, workers] = key;
    const ThesisFigure& figure = figure_of(number);
    if (!point.lab || figure.sync != sync || its_server != net::name_of(server)) continue;
    const double estimate = parts == Parts::dealt && server == ServerMode::distributed
                                ? estimated_as_dealt(thesis, figure, workers)
                                : estimated(thesis, figure, server, workers);
    errors.emplace_back(estimate / point.lab->speedup - 1.0, name_of(key));
  }
  return error_from(errors);
}

}  // namespace duplex::tools::reports
