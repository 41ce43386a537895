// The weights and statistics of a network that is cut, brought together on the first rank between
// two steps of a training, so that it can be tested there.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "core/files/state_file.h"
#include "layers/exchange/host_parameters.h"
#include "net/connection/state_inbox.h"
#include "net/exchange/exchange.h"
#include "tools/parts/cut_part.h"

namespace duplex::tools {

/// Every other rank sends the first one the weights of the chunks that it owns, which are exact
/// whatever the wire rounds, and behind them the running statistics of its part. All of it takes
/// the wire when neither weights nor gradients do.
class PartStates {
 public:
  /// `cut` must outlive it.
  PartStates(CutPart& cut, int rank, int ranks) : cut_(cut), rank_(rank), ranks_(ranks) {}

  /// On the first rank: takes what others send by ExchangeSpec::state_inbox. `map` has the owners.
  /// Call it before the exchange is made.
  void prepare(const net::ShardMap& map, net::ExchangeSpec& exchange);

  /// On other ranks, after await_all, between two steps: sends copies of what this rank has after
  /// so many steps. `network`: that of its part.
  void send(net::ParameterExchange& wire, std::uint64_t steps, Network& network) const;

  struct Whole {
    const HostParameters& weights;  ///< Of the whole network; the next call overwrites them.
    std::vector<float> statistics;  ///< In the order of its layers.
  };
  /// On the first rank, after await_all, between two steps: waits for what all others send. `host`,
  /// `network`: those of its part. Throws as ParameterExchange does where the run fails meanwhile.
  Whole take(net::ParameterExchange& wire, std::uint64_t steps, const HostParameters& host,
             Network& network);

 private:
  std::vector<float> await(net::ParameterExchange& wire, int owner, std::uint64_t steps) const;

  CutPart& cut_;
  const int rank_, ranks_;
  const std::shared_ptr<net::StateInbox> inbox_ = std::make_shared<net::StateInbox>();
};

}  // namespace duplex::tools
