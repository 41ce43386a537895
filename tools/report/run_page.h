// One page of some runs: what was run and where, what came of it, and where the time went.
#pragma once
#include <string>
#include <vector>

#include "tools/report/run_data.h"

namespace duplex::tools::reports {

/// The whole page, HTML. The runs in their order; the first of one machine is what speedup is
/// measured against.
std::string run_page(const std::vector<RunData>& runs, const std::vector<LinkData>& links);

}  // namespace duplex::tools::reports
