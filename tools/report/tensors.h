// Tells from the ledgers what each tensor costs to move, and how much the codings of values save.
#pragma once
#include "tools/report/page.h"
#include "tools/report/run_data.h"

namespace duplex::tools::reports {

/// Adds charts and tables by tensor, as far as the run's ledgers have frames.
void add_tensors(Page& page, const RunData& run);

}  // namespace duplex::tools::reports
