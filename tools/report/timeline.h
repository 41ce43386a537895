// The timeline of all ranks: a trace, drawn in the page, to zoom into.
#pragma once
#include <string>

#include "tools/report/page.h"
#include "tools/report/trace_data.h"

namespace duplex::tools::reports {

void add_timeline(Page& page, const TraceData& trace, const std::string& id);

}  // namespace duplex::tools::reports
