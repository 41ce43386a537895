// Shows what `duplex check` has found.
#pragma once
#include <string>
#include <vector>

#include "tools/check/verdict.h"

namespace duplex::tools {

/// A table for a terminal of 80 columns, and below it a line that sums it up.
std::string check_table(const Survey& survey, const std::vector<Finding>& findings);

/// JSON with everything: facts of machines, calls, rates and findings.
std::string check_json(const Survey& survey, const std::vector<Finding>& findings);

}  // namespace duplex::tools
