// Tells the user about a rank's wire: bytes and times, the staleness of asynchronous runs, for whom
// the ranks of others waited, and what came of a plan.
#pragma once
#include <string>
#include <vector>

#include "net/ledger/ledger.h"
#include "net/store/store.h"
#include "net/store/straggler_tally.h"
#include "tools/run_directory/rows.h"
#include "tools/run_directory/run_config.h"
#include "tools/run_directory/run_summary.h"

namespace duplex::tools {

/// Two lines for the user. t_comm is that of `rank`; others may have another. `averages`: traffic
/// is counted by averagings (--average).
std::string traffic_report(const net::TrafficSummary& traffic, int rank, bool averages);

/// Compares what came of a plan with what it foresaw. `step`: seconds of the first worker's steps,
/// in each of which all workers together have so many images.
std::string plan_report(const PlanConfig& plan, double step, std::uint64_t images);

/// Updates by others between the weights of a gradient and the gradient's own: a line for the user
/// over the run, and a row a worker and step.
std::string staleness_report(const std::vector<net::Store::Staleness>& steps);
std::vector<StalenessRow> staleness_rows(const std::vector<net::Store::Staleness>& steps);

/// Makes an owner's counts ready for its summary. `workers`: their ranks.
std::vector<StragglerSummary> straggler_summaries(const std::vector<net::StragglerTime>& times,
                                                  const std::vector<int>& workers);

}  // namespace duplex::tools
