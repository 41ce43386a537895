// What a rank tells of its wire: bytes and times, and of asynchronous runs staleness.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "net/connection/connection_bytes.h"
#include "net/ledger/ledger.h"
#include "net/store/store.h"

namespace duplex::tools {

nlohmann::ordered_json json_of(const net::TrafficSummary& traffic);
/// With the kernel's counters beside the ledger's sums, where it has them.
nlohmann::ordered_json json_of(const std::vector<net::ConnectionBytes>& connections);
/// Two lines for the user.
std::string traffic_report(const net::TrafficSummary& traffic);

/// Updates by others between the weights of a gradient and the gradient's own: a line for the user
/// over the run, and a row a worker and step.
std::string staleness_report(const std::vector<net::Store::Staleness>& steps);
std::string staleness_csv(const std::vector<net::Store::Staleness>& steps);

}  // namespace duplex::tools
