// The section of a page on what a run's weights say of a data set's classes (evaluation.json).
#pragma once
#include "tools/report/page.h"
#include "tools/report/run_data.h"

namespace duplex::tools::reports {

/// Adds it if the run was evaluated: accuracy, confusion, precision and recall, and the images that
/// it is most wrong about.
void add_evaluation(Page& page, const RunData& run);

}  // namespace duplex::tools::reports
