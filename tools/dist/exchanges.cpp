#include "tools/dist/exchanges.h"

#include "layers/exchange/averaging_exchange.h"
#include "layers/exchange/host_staging.h"
#include "layers/exchange/strict_exchange.h"

namespace duplex::tools {

Exchanges make_exchanges(const DistSpec& spec, Network* network, HostParameters& host,
                         Exchange& wire, Exchange* own, std::uint64_t steps, int slot) {
  Exchanges made;
  if (network != nullptr && spec.parallel.average == 0) {
    made.push_back(std::make_unique<HostStaging>(*network, host, wire, Pushes::gradients, slot,
                                                 spec.slots_of(spec.rank())));
  } else if (network != nullptr) {
    made.push_back(std::make_unique<AveragingExchange>(*network, host, wire, *own,
                                                       spec.parallel.average, steps));
  }
  if (!spec.parallel.overlap) {
    Exchange& inner = made.empty() ? wire : *made.back();
    made.push_back(std::make_unique<StrictExchange>(inner, host.spans().size()));
  }
  return made;
}

}  // namespace duplex::tools
