// How far predicted speedups are from the lab's.
#pragma once
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "tools/report/thesis/reached.h"
#include "tools/report/thesis/thesis_data.h"

namespace duplex::tools::reports {

/// Over all points that have both.
struct PredictionError {
  std::size_t points = 0;
  std::size_t high = 0;              ///< Points that were predicted faster than they are.
  double median = 0.0, worst = 0.0;  ///< Part of the lab's.
  std::string worst_at;
};
enum class Runs { all, undisturbed };
PredictionError prediction_error(const Thesis& thesis, const std::vector<Order>& orders,
                                 Runs runs = Runs::all);

/// The parts of a distributed server that an estimate supposes: N equal ones, as (4.12) and (4.21)
/// do, or those that Algorithm 3.7 makes. Then the owner with the most to move takes as long as an
/// iteration does. That the thesis does not have.
enum class Parts { equal, dealt };
/// The error of the thesis's estimates, against the lab in the thesis's order, of one server.
PredictionError estimate_error(const Thesis& thesis, net::ServerMode server, net::Sync sync,
                               Parts parts = Parts::equal);

/// Returns the speedup that the equations give with this machine's t_comm and Table 6.1's t_grad.
double estimated(const Thesis& thesis, const ThesisFigure& figure, net::ServerMode server,
                 int workers);
/// The same where the thesis has a best and a worst case, (4.10) or (4.19): with a central server.
std::optional<Interval> estimated_between(const Thesis& thesis, const ThesisFigure& figure,
                                          net::ServerMode server, int workers);
/// Returns what Table 6.1's own t_comm gives.
double estimated_by_table_6_1(const ThesisFigure& figure, net::ServerMode server, int workers);

}  // namespace duplex::tools::reports
