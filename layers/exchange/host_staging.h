// Stages parameters between a network's device and an exchange that works in host memory: await
// uploads weights that have come, push downloads a gradient that is to go.
#pragma once
#include <memory>
#include <vector>

#include "core/exchange.h"
#include "layers/exchange/host_parameters.h"
#include "layers/exchange/push_queue.h"
#include "layers/network.h"

namespace duplex {

/// Says what is pushed: gradients, or weights in their place (AveragingExchange).
enum class Pushes { gradients, weights };

/// Copies beside the device's operations, if the device can do that. Of linear layers that are
/// factored (HostParameters) it pushes factors; push() waits for their copy, since the next layer's
/// backward overwrites them.
class HostStaging final : public Exchange {
 public:
  /// `inner` exchanges the spans of `host`. All arguments must outlive this object. The network's
  /// batch is that of one of the rank's `slots`, whose factors lie side by side: those of devices,
  /// or those of micro-batches, one after the other (computed_by).
  HostStaging(Network& network, const HostParameters& host, Exchange& inner,
              Pushes pushes = Pushes::gradients, int slot = 0, int slots = 1);

  void begin(std::uint64_t step) override { inner_.begin(step); }
  void await(std::size_t parameter) override;
  /// Downloads factors; other gradients stay where they are until they are pushed.
  void computed(std::size_t parameter) override;
  /// The same of factors where micro-batch `slot` was computed by this network, which has the same
  /// layers. Returns false, and does nothing, if they are not exchanged of the parameter.
  bool computed_by(const Network& network, std::size_t parameter, std::int64_t slot);
  /// Downloads what is pushed to the gradient's place in host memory, and pushes it from there.
  void push(std::size_t parameter) override;
  /// Returns when everything that was pushed has been handed to `inner`.
  void end() override;
  void await_all() override;

 private:
  /// A parameter on the device and on the host.
  struct Staged {
    Tensor weights, pushed;
    float *host_weights, *host_gradient;
    bool factored = false;  ///< It has no gradient; weights that have factors are of `layer`.
    float* factors = nullptr;
    std::size_t layer = 0;    ///< Number among the network's.
    bool downloaded = false;  ///< The factors of this step are in host memory.
  };

  void download_factors(const Network& network, const Staged& staged, std::int64_t slot);

  Network& network_;
  Device& device_;
  Exchange& inner_;
  std::int64_t slot_, slots_;
  std::vector<Staged> staged_;  ///< By parameter.
  std::vector<std::shared_ptr<void>> pinned_;
  PushQueue queue_;  ///< Declared last, since its thread uses the others.
};

}  // namespace duplex
