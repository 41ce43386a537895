// The results that the thesis states (chapter 6), and what became of them here.
#pragma once
#include <string>
#include <vector>

#include "tools/report/thesis/thesis_data.h"

namespace duplex::tools::reports {

struct Verdict {
  std::string figures;    ///< Where the thesis has it: "6.4", "6.1, 6.8", "6.1-6.4".
  std::string statement;  ///< In its words, shortened.
  std::string found;      ///< Numbers of this machine.
  enum { confirmed, refuted, open } outcome = open;
  bool is_of(const std::string& figure) const;
  std::string text() const;  ///< The outcome, for people.
};
std::vector<Verdict> verdicts(const Thesis& thesis);

/// Says how far predicted speedups are from the lab's, over all points that have both.
struct PredictionError {
  std::size_t points = 0;
  double median = 0.0, worst = 0.0;  ///< Part of the lab's.
  std::string worst_at;
};
enum class Order { strict, overlap, both };
enum class Runs { all, undisturbed };
PredictionError prediction_error(const Thesis& thesis, Order order, Runs runs = Runs::all);
/// The same of the thesis's estimates, against the lab in the thesis's order, of one server.
PredictionError estimate_error(const Thesis& thesis, net::ServerMode server, net::Sync sync);

/// Returns the speedup that the equations give with this machine's t_comm and Table 6.1's t_grad.
double estimated(const Thesis& thesis, const ThesisFigure& figure, net::ServerMode server,
                 int workers);

}  // namespace duplex::tools::reports
