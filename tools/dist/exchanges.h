// The exchanges between the training loop and the wire.
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "core/exchange.h"
#include "layers/exchange/host_parameters.h"
#include "layers/network.h"
#include "tools/dist/dist_spec.h"

namespace duplex::tools {

/// Each is built on the one before it. The loop uses the last; they use the wire. Empty if the loop
/// uses the wire itself.
using Exchanges = std::vector<std::unique_ptr<Exchange>>;

/// `network` is null for a replay. `own`: with --average, the exchange that updates the worker's
/// own weights, by Updates::each. `steps`: of the whole run. `slot`: whose network and host they
/// are. All arguments must outlive the result.
Exchanges make_exchanges(const DistSpec& spec, Network* network, HostParameters& host,
                         Exchange& wire, Exchange* own, std::uint64_t steps, int slot = 0);

}  // namespace duplex::tools
