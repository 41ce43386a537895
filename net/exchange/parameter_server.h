// What a rank does with the chunks that it owns: a parameter server. It collects gradients in a
// store, and sends the new weights to every worker.
#pragma once
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "net/connection/queued_semaphore.h"
#include "net/exchange/incoming_weights.h"
#include "net/exchange/local_gradient_queue.h"
#include "net/exchange/peers.h"
#include "net/exchange/spec.h"
#include "net/ledger/trace.h"
#include "net/store/store.h"
#include "net/topology/topology.h"

namespace duplex::net {

/// What the parts of an exchange share; all of it outlives them.
struct ExchangeContext {
  const ExchangeSpec& spec;
  const std::vector<Span>& spans;
  const Topology& topology;
  const int rank;
  const ShardMap& map;
  Peers& peers;
  TraceWindow& trace;
  /// Ends the run early: tells the peers, wakes every wait.
  std::function<void(std::exception_ptr)> fail;
};

class ParameterServer {
 public:
  /// `incoming`: of the worker on this rank; null where there is none.
  ParameterServer(const ExchangeContext& context, IncomingWeights* incoming);

  /// Publishes the first weights, and starts the thread for this rank's own gradients.
  void start();

  /// Where a worker's gradient is to go; then commit(). Waits while there is no room. Null: the run
  /// is over. Throws ProtocolError for a gradient that is not due, and Error where others were
  /// waited for in vain.
  float* reserve(int peer, std::size_t chunk, std::uint64_t step);
  void commit(std::size_t chunk, int worker) { store_->commit(chunk, worker); }
  /// A gradient of this rank's worker, which must stay as it is until the chunk's next weights are
  /// there. Returns at once.
  void submit(std::size_t chunk, std::uint64_t step, const float* gradient);

  /// Weights for a peer that were queued without payload, as they are now.
  void copy_weights(int peer, std::size_t chunk, float* to);
  void weights_sent(std::size_t chunk) { store_->sent(chunk); }

  /// Turns to send (ExchangeSpec::semaphore): a worker asks for its turn to send gradients, and
  /// gives it back; a connection tells what it wants of the turn to send weights. They throw
  /// ProtocolError where that cannot be.
  void ask_turn(int peer);
  void release_turn(int peer);
  void weights_turn(int peer, SendOrder::Tell what);

  /// Asynchronous: the worker of that rank pushes no more, or is lost.
  void done(int rank, bool lost);
  /// Asynchronous: the last weights into the spans of a rank that only serves.
  void copy_own_weights();

  /// What gradients are waited for in vain, or from a rank that has ended; null: nothing.
  std::exception_ptr trouble() const;
  std::vector<Store::Staleness> staleness() const { return store_->staleness(); }

  /// Wakes what waits; from now on nothing is added. From any thread.
  void stop();
  /// After stop(): ends the thread.
  void join();

 private:
  int worker_of(int rank) const { return context_.topology.worker_number(rank); }
  StoreSpec store_spec();
  void publish(const Publication& publication);
  void send(int to, const Publication& publication);
  void note(const StoreWork& work);
  Error error_of(const Store::Overdue& overdue) const;

  const ExchangeContext& context_;
  IncomingWeights* const incoming_;
  const std::vector<int> workers_;                 ///< Ranks, by number.
  const std::size_t head_start_;                   ///< Of gradients before weights (send_order.h).
  QueuedSemaphore gradients_turn_, weights_turn_;  ///< Of the workers' ranks.
  std::unique_ptr<Store> store_;
  std::unique_ptr<LocalGradientQueue> own_gradients_;  ///< From start() on, if this rank trains.
};

/// A rank ended its training while this one goes on.
Error left_early(const Peers& peers, int rank);

}  // namespace duplex::net
