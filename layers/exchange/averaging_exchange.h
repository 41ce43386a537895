// Implements parameter averaging, known as local SGD: workers train by themselves and go on with
// the mean of their weights every few steps.
#pragma once
#include <cstdint>

#include "core/exchange.h"
#include "layers/exchange/host_staging.h"

namespace duplex {

/// The worker updates weights of its own (`local`); after every `every` steps, and after the last
/// of `steps`, all workers go on with the mean of their weights. The optimiser's state stays with
/// the worker. `wire` counts rounds, not steps, and takes the mean of what is pushed. `local` must
/// update a parameter in its push (Updates::each), since the weights leave at once. `every` is 1 or
/// more. All arguments must outlive the exchange, which stages what travels by a HostStaging of its
/// own.
class AveragingExchange final : public Exchange {
 public:
  AveragingExchange(Network& network, const HostParameters& host, Exchange& wire, Exchange& local,
                    std::uint64_t every, std::uint64_t steps)
      : staging_(network, host, wire, Pushes::weights),
        local_(local),
        every_(every),
        steps_(steps) {}

  void begin(std::uint64_t step) override;
  void await(std::size_t parameter) override;
  void push(std::size_t parameter) override;
  void end() override;
  /// Brings the mean after the last step of a round; does nothing after the others.
  void await_all() override {
    if (last_of_round()) staging_.await_all();
  }

 private:
  bool first_of_round() const { return step_ % every_ == 0; }
  bool last_of_round() const { return (step_ + 1) % every_ == 0 || step_ + 1 == steps_; }

  HostStaging staging_;
  Exchange& local_;
  std::uint64_t every_, steps_, step_ = 0;
};

}  // namespace duplex
