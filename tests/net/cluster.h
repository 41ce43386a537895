// A run of several ranks in one process, over real loopback sockets: a thread for each rank.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "core/random.h"
#include "net/exchange.h"

namespace duplex::net {

inline Identity test_identity() {
  return {"test", fingerprint("model"), fingerprint("data"), fingerprint("settings")};
}

/// Mesh specs for all ranks, with listeners on ports that are free.
struct Ports {
  explicit Ports(const Topology& topology) {
    for (int rank = 0; rank < topology.size; ++rank) {
      listeners.push_back(Listener::open({"127.0.0.1", 0}));
      addresses.push_back({"127.0.0.1", listeners.back().port()});
    }
  }
  std::vector<Listener> listeners;
  std::vector<Address> addresses;
};

/// What became of a rank.
struct Outcome {
  bool ok = false;
  Exit code = Exit::ok;
  std::string message;
  double seconds = 0;
};

/// Runs `body(rank, mesh spec, listener)` for every rank, each in a thread, to the end of all.
std::vector<Outcome> run_ranks(const Topology& topology,
                               const std::function<void(int, MeshSpec, Listener)>& body,
                               std::chrono::milliseconds timeout = std::chrono::seconds(20));

/// Weights and gradients of a model that is not there: parameter p has counts[p] elements.
struct Replica {
  explicit Replica(const std::vector<std::size_t>& counts);
  void set_initial();  ///< Weights by seed.
  /// The gradient that worker `worker` would compute of parameter p in `step`: depends on all three
  /// and on the weights.
  void compute(std::size_t p, int worker, std::uint64_t step);
  std::vector<Span> spans();

  std::vector<std::vector<float>> weights, gradients;
};

/// What one machine makes of the gradients of `workers` workers over `steps` steps: the update by
/// their mean, summed in order. Returns the weights.
std::vector<std::vector<float>> train_alone(const std::vector<std::size_t>& counts, int workers,
                                            std::uint64_t steps, const OptimiserSpec& optimiser,
                                            const LearningRate& rate);

/// One worker's training loop: forward order in awaiting, backward order in pushing.
void train(ParameterExchange& exchange, Replica& replica, int worker, std::uint64_t steps);

}  // namespace duplex::net
