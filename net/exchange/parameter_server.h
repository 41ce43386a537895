// The parameter server of a rank handles the chunks that the rank owns: it collects gradients in a
// store, and sends the new weights to every worker.
#pragma once
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "core/clock.h"
#include "net/connection/peers.h"
#include "net/connection/progress.h"
#include "net/connection/queued_semaphore.h"
#include "net/exchange/incoming_weights.h"
#include "net/exchange/local_gradient_queue.h"
#include "net/exchange/snapshot_marks.h"
#include "net/exchange/spec.h"
#include "net/factors/factor_map.h"
#include "net/ledger/trace.h"
#include "net/store/batch_pool.h"
#include "net/store/store.h"
#include "net/topology/topology.h"

namespace duplex::net {

/// The parts of an exchange that its parameter server uses; all of them outlive it.
struct ExchangeContext {
  const ExchangeSpec& spec;
  const std::vector<Span>& spans;
  const Topology& topology;
  const int rank;
  const ShardMap& map;
  Peers& peers;
  const Progress& progress;
  TraceWindow& trace;
  /// Ends the run early: tells the peers and wakes every wait.
  std::function<void(std::exception_ptr)> fail;
};

class ParameterServer {
 public:
  /// `incoming` is that of the worker on this rank; null if there is none. Of parameters that are
  /// `factored`, which may be null, it sends the first weights alone.
  ParameterServer(const ExchangeContext& context, IncomingWeights* incoming,
                  const FactorMap* factored);

  /// Publishes the first weights, and starts the thread for this rank's own gradients.
  void start();

  /// Returns where a worker's gradient is to go; then call Store::commit. Waits while there is no
  /// room. Its memory is null if the run is over. Throws ProtocolError for a gradient that is not
  /// due, and Error if others were waited for in vain.
  Reservation reserve(int peer, const Chunk& chunk, std::uint64_t step);
  /// Submits a gradient of this rank's worker and returns at once. The gradient must not change
  /// until the chunk's next weights are there.
  void submit(std::size_t chunk, std::uint64_t step, const float* gradient);

  /// In a synchronous run: the weights of this step are the last ones, and leave as they are.
  /// Returns false, and does nothing, where the training ends no later as it is.
  bool end_at(std::uint64_t step) {
    if (step >= end_at_ || (context_.spec.last_step && step >= *context_.spec.last_step))
      return false;
    end_at_ = step;
    return true;
  }
  /// Says whether the weights of that step are the last ones.
  bool ends_at(std::uint64_t step) const {
    return step == context_.spec.last_step || step == end_at_;
  }

  /// Copies a chunk's weights as they are now, for a peer's frame that was queued without payload.
  void copy_weights(int peer, std::size_t chunk, float* to);

  /// Turns to send (ExchangeSpec::semaphore): a worker asks for its turn to send gradients and
  /// gives it back; a connection tells what it wants done with its turn to send weights. They throw
  /// ProtocolError for what cannot be.
  /// A worker asks for, or gives back, its turn to send gradients. Both return false where it may
  /// not.
  bool ask_turn(int peer);
  bool release_turn(int peer);
  void weights_turn(int peer, SendOrder::TurnRequest what);
  /// The worker that has had the turn for gradients for the timeout and sent none, while another
  /// waits for it; none: there is no such worker.
  std::optional<int> idle_with_turn() const;

  /// In an asynchronous run: the worker of that rank has trained all that it was given. `steps`: of
  /// its whole training. A central server leases it batches of lost workers, as long as there are
  /// any. Throws ProtocolError where it may not be so yet.
  void done(int rank, std::uint64_t steps);
  /// In an asynchronous run with a central server: the worker of that rank is lost.
  void lose(int rank);
  /// Returns whether it is, and lose() has done all that there is to do, so that it may come back.
  bool is_lost(int rank) const;
  /// A lost worker that comes back goes on with these steps.
  struct Return {
    StepRange steps;
    std::uint64_t checkpoint =
        0;  ///< It counts checkpoints on from this one (SnapshotMarks::begin).
  };
  /// The worker of that rank has shaken hands again; none: the run is over. Call begin_again()
  /// then, or lose(). Later checkpoints wait for its marks.
  std::optional<Return> come_back(int rank);
  /// Its connection is there: it gets all weights.
  void begin_again(int rank, std::uint64_t step);
  /// Waits until all batches are done, or a signal has ended the training, for so long at most.
  /// Returns whether that is so.
  bool wait_until_over(std::chrono::milliseconds at_most);
  /// Batches of lost workers that others have trained: [worker][other], by their numbers.
  std::vector<std::vector<std::uint64_t>> trained_by_others() const;
  bool over() const;
  /// A central server calls for a checkpoint. Where a signal ends the training with it, no batches
  /// are leased from the first call on.
  void stop_giving();
  void open(const CheckpointCall& call);
  /// Ends the run where nothing is left to do, once all have heard of the call.
  void opened();
  /// Returns the open checkpoints that the worker of that rank has not marked.
  std::vector<CheckpointCall> owed_by(int rank) { return marks_.owed_by(worker_of(rank)); }
  /// In an asynchronous run: the worker of that rank has taken its part of a checkpoint. With the
  /// last one's mark, calls ExchangeSpec::snapshot.
  void mark(int rank, const CheckpointCall& call);
  /// Throws ProtocolError where the worker of that rank lacks weights that answer its gradients.
  void require_answered(int rank) const;
  /// The worker of that rank says goodbye. Throws ProtocolError where it is owed something.
  void require_parting(int rank) const;
  /// Returns whether all chunks are of this step, and that worker has pushed no gradient of it.
  bool rests_at(std::uint64_t step, int rank) const {
    return store_->common_step(worker_of(rank)) == step;
  }
  /// In an asynchronous run: copies the last weights into the spans of a rank that only serves.
  void copy_own_weights();

  /// "rank 2 (...): no gradient of conv1.weight for step 7 within 15.0 s; it got on 3.2 s ago", of
  /// other ranks' gradients that have been waited for so long; "": there are none.
  std::string late(Clock::duration least) const;
  /// The error if gradients are overdue, or missing from a rank that has ended its training; null
  /// if there is none.
  std::exception_ptr trouble() const;
  Store& store() { return *store_; }
  const Store& store() const { return *store_; }
  std::vector<Store::Staleness> staleness() const { return store_->staleness(); }

  /// Wakes whoever waits for room, and submits no more gradients of this rank. Any thread may call
  /// it.
  void stop();
  /// Ends the thread for this rank's own gradients, after stop() or at the end of the run.
  void join();

 private:
  int worker_of(int rank) const { return numbers_[static_cast<std::size_t>(rank)]; }
  StoreSpec store_spec();
  void publish(const Publication& publication);
  /// The coordinator ends with the whole network, also where it trains a part of it.
  bool wants(int rank, const Chunk& chunk, bool last) const {
    return context_.map.trains(rank, chunk.parameter) ||
           (last && rank == context_.topology.coordinator());
  }
  bool is_last(const Publication& publication) const {
    return publication.last || ends_at(publication.step);
  }
  void note(const StoreWork& work);
  void take_snapshots(const std::vector<CheckpointCall>& calls);
  void give_work();
  Error error_of(const Store::Overdue& overdue) const;
  void spare_who_waits(std::vector<int>& workers) const;
  /// Returns when the last of these workers got on.
  Deadline progressed(const std::vector<int>& workers) const;

  const ExchangeContext& context_;
  IncomingWeights* const incoming_;
  const FactorMap* const factored_;
  const std::vector<int> workers_;  ///< Ranks of the workers, by worker number.
  std::vector<int> numbers_;        ///< Worker numbers, by rank; -1: it is none.
  const std::size_t head_start_;    ///< In elements; see send_order.h.
  /// By worker number: when it was given the turn for gradients or sent some, by clock_ns().
  std::vector<std::atomic<std::int64_t>> used_turn_;
  static constexpr std::uint64_t no_end = std::numeric_limits<std::uint64_t>::max();
  std::atomic<std::uint64_t> end_at_{no_end};
  QueuedSemaphore gradients_turn_, weights_turn_;  ///< Ranks of workers stand in their queues.
  std::unique_ptr<Store> store_;
  SnapshotMarks marks_;
  /// Guards all below. Receiving threads and the one that takes lost ranks back take it; within it
  /// they use the store and the send queues.
  mutable std::mutex work_mutex_;
  std::condition_variable work_changed_;
  std::optional<BatchPool> pool_;  ///< Only a central server of an asynchronous run has it.
  bool over_ = false;
  std::unique_ptr<LocalGradientQueue> own_gradients_;  ///< Set by start() if this rank trains.
};

}  // namespace duplex::net
