// The beginning of a page of runs: what was run, whether it paid, and whether that was foreseen.
#pragma once
#include <optional>
#include <vector>

#include "tools/report/page.h"
#include "tools/report/prediction.h"
#include "tools/report/run_data.h"

namespace duplex::tools::reports {

using Predictions = std::vector<std::optional<Prediction>>;  ///< One a run.

void add_overview(Page& page, const std::vector<RunData>& runs, const Predictions& predictions);
/// What plans foresaw of the runs that followed one, beside what came of it, term by term.
void add_plans(Page& page, const std::vector<RunData>& runs);

}  // namespace duplex::tools::reports
