// Time to accuracy: what each way to train took to it, in seconds and in bytes.
#pragma once
#include <string>

#include "tools/report/accuracy/accuracy_data.h"

namespace duplex::tools::reports {

/// The whole page, HTML.
std::string accuracy_page(const AccuracyResults& results);

}  // namespace duplex::tools::reports
