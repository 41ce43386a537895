// The timeline of all ranks: a trace, drawn in the page, to zoom into.
#pragma once
#include <string>

#include "tools/report/page.h"
#include "tools/report/trace_data.h"

namespace duplex::tools::reports {

/// `step`: what a step of the trace is called (RunData::exchange_step()).
void add_timeline(Page& page, const TraceData& trace, const std::string& step,
                  const std::string& id);

}  // namespace duplex::tools::reports
