// One page of some runs: what was run and where, what came of it, and where the time went.
#pragma once
#include <string>
#include <vector>

#include "tools/report/run_data.h"

namespace duplex::tools::reports {

/// The whole page, HTML. The runs in their order; the first of one machine is what speedup is
/// measured against. `reload`: seconds after which a browser loads it again; 0: it does not.
std::string run_page(const std::vector<RunData>& runs, const std::vector<LinkData>& links,
                     double reload = 0.0);

}  // namespace duplex::tools::reports
