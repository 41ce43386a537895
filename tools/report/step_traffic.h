// The sums of the steps' traffic, from traffic-RANK.csv.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "net/ledger/sampled_steps.h"
#include "net/ledger/traffic.h"
#include "tools/report/chart.h"

namespace duplex::tools::reports {

/// Returns a row for each step, in their order, with the parts of a step added up. Where the run
/// was interrupted, and so is not `complete`, a last line that is not whole is left out. Throws
/// Error as read_rows() does.
std::vector<net::StepTraffic> read_step_traffic(const std::string& path, bool complete);

/// Draws how long frames crossed the wire in each step; a point is the mean of a stretch. `step`:
/// what a step is called (RunData::exchange_step()).
LineChart traffic_chart(const std::vector<net::StepTraffic>& steps, const std::string& step);

/// Says which ranks' ledgers do not have every frame, and what they have; "" where all have.
/// `step`: as above.
std::string frames_left_out(const std::map<int, std::optional<net::FramesKept>>& ranks,
                            const std::string& step);

}  // namespace duplex::tools::reports
