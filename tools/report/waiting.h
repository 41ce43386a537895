// The report's section on waiting: how long workers waited in a step, while what was on the wire,
// and for whom.
#pragma once
#include "tools/report/page.h"
#include "tools/report/run_data.h"

namespace duplex::tools::reports {

/// Adds nothing where the run has left neither traffic-RANK.csv of a worker nor an owner's
/// stragglers.
void add_waiting(Page& page, const RunData& run);

}  // namespace duplex::tools::reports
