// Chapter 2 of the thesis: the tables of its networks, printed from the models that are trained.
#pragma once
#include "tools/report/page.h"

namespace duplex::tools::reports {

/// Adds Tables 2.1 to 2.5.
void add_networks(Page& page);

}  // namespace duplex::tools::reports
