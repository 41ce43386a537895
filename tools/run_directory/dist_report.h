// Tells the user about a rank's wire: bytes and times, and the staleness of asynchronous runs.
#pragma once
#include <string>
#include <vector>

#include "net/ledger/ledger.h"
#include "net/store/store.h"
#include "tools/run_directory/rows.h"

namespace duplex::tools {

/// Two lines for the user. t_comm is that of `rank`; others may have another.
std::string traffic_report(const net::TrafficSummary& traffic, int rank);

/// Updates by others between the weights of a gradient and the gradient's own: a line for the user
/// over the run, and a row a worker and step.
std::string staleness_report(const std::vector<net::Store::Staleness>& steps);
std::vector<StalenessRow> staleness_rows(const std::vector<net::Store::Staleness>& steps);

}  // namespace duplex::tools
