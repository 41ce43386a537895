// The thesis's tables and figures, in its order and numbering, each with what it says and whether
// that was confirmed.
#pragma once
#include <string>

#include "tools/report/thesis/thesis_data.h"

namespace duplex::tools::reports {

/// The whole page, HTML.
std::string thesis_page(const Thesis& thesis);

}  // namespace duplex::tools::reports
