// A made-up model, and how ranks train it.
#pragma once
#include <vector>

#include "core/random.h"
#include "net/exchange/exchange.h"
#include "tests/ranks_in_threads.h"

namespace duplex::net {

/// Weights and gradients of a made-up model: parameter p has counts[p] elements.
struct Replica {
  explicit Replica(const std::vector<std::size_t>& counts);
  void set_initial();  ///< Sets random weights by a seed.
  /// Fills in the gradient that worker `worker` would compute of parameter p in `step`. It depends
  /// on all three and on the weights.
  void compute(std::size_t p, int worker, std::uint64_t step);
  std::vector<Span> spans();

  std::vector<std::vector<float>> weights, gradients;
};

/// Trains on one machine with the gradients of `workers` workers over `steps` steps: updates by
/// their mean, summed in order. Returns the weights.
std::vector<std::vector<float>> train_alone(const std::vector<std::size_t>& counts, int workers,
                                            std::uint64_t steps, const OptimiserSpec& optimiser,
                                            const LearningRate& rate);

/// One worker's training loop: it awaits in forward order and pushes in backward order.
void train(ParameterExchange& exchange, Replica& replica, int worker, std::uint64_t steps);

/// Trains batches of lost workers as long as the server leases some. Returns how many. `steps`: of
/// every worker's training.
std::uint64_t train_leases(ParameterExchange& exchange, Replica& replica, std::uint64_t steps);

}  // namespace duplex::net
