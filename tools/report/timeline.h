// The timeline of a few steps of all ranks: a trace, drawn in the page, to zoom into.
#pragma once
#include <string>

#include "tools/report/page.h"

namespace duplex::tools::reports {

/// Adds the last `steps` steps of a trace.json. Throws Error where the file is none.
void add_timeline(Page& page, const std::string& trace_path, int steps, const std::string& id);

}  // namespace duplex::tools::reports
