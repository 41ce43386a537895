// Compares a run with the speedup that the equations and the simulation predict for it.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "tools/report/run_data.h"

namespace duplex::tools::reports {

struct Prediction {
  std::string alone;                           ///< Where t_grad of one machine is from: words.
  double grad = 0.0;                           ///< That t_grad, seconds.
  double comm = 0.0;                           ///< Seconds.
  std::string comm_of;                         ///< Whose t_comm it is: words.
  double measured = 0.0;                       ///< Speedups.
  std::optional<double> equation, simulation;  ///< None: averaging has no equation.
};

/// Predicts a parallel run whose steps were timed; none where nothing says what one machine takes.
/// t_comm is that of a link with the same network, or else as link_comm() has it.
std::optional<Prediction> prediction_of(const RunData& run, const std::vector<RunData>& all,
                                        const std::vector<LinkData>& links);

}  // namespace duplex::tools::reports
