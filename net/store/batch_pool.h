// The batches of an asynchronous run with a central server that workers have lost, and who trains
// them in their place.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "net/store/step_ranges.h"

namespace duplex::net {

/// Each worker begins with the steps of its own, in order. When it is idle, having trained them, it
/// gets leases of what lost workers have left. A batch is done when its gradients are in all
/// chunks. The run is over when nothing is left and nobody trains. Its owner guards it.
class BatchPool {
 public:
  /// The most batches of a lease: little is trained twice where the lessee is lost, too.
  static constexpr std::uint64_t most_leased = 4;

  /// Returns those of a worker's steps whose gradients are not in all chunks (Store::undone).
  using Undone = std::function<std::vector<StepRange>(int worker, const StepRange& steps)>;

  /// `own`: the steps that each worker begins with; an `end` of `to_its_end` is where all workers
  /// end. What is not done of the steps behind another end is left by nobody, and free.
  /// `total`: see idle(); none: not known yet.
  BatchPool(const std::vector<StepRange>& own, Undone undone,
            std::optional<std::uint64_t> total = {});
  static constexpr std::uint64_t to_its_end = ~std::uint64_t{0};

  /// The worker has trained all that it was given, and its gradients have been applied. `total`:
  /// the steps of its whole training. A lost worker's is as long as the longest. Throws
  /// ProtocolError if it is idle already.
  void idle(int worker, std::uint64_t total);
  /// The worker is being lost: it is not idle any more, so that it gets no lease, and the run is
  /// not over before lose().
  void leave(int worker);
  /// The worker is lost: what is not done of its steps is free, and so is that of its lease.
  void lose(int worker);
  /// A lost worker is back. Returns the steps that it goes on with: the first of its own that are
  /// neither done nor leased and follow one another. None: the run is over.
  std::optional<StepRange> come_back(int worker);

  /// Gives an idle worker some batches, which it trains now; none: nothing is free.
  std::optional<Lease> lease(int worker);
  /// From now on nothing is given any more, since a signal ends the training.
  void stop();
  /// Returns whether the run is over. It is so for good.
  bool over();
  bool is_idle(int worker) const { return at(worker).state == State::idle; }
  bool is_lost(int worker) const { return at(worker).state == State::lost; }
  /// Batches of each worker that others have trained to their end: [worker][other].
  const std::vector<std::vector<std::uint64_t>>& trained_by_others() const {
    return trained_by_others_;
  }

 private:
  enum class State { trains, idle, leaving, lost };
  struct Worker {
    State state = State::trains;
    StepRange own;
    std::optional<Lease> lease;
    StepRanges free;
  };
  Worker& at(int worker) { return workers_[static_cast<std::size_t>(worker)]; }
  const Worker& at(int worker) const { return workers_[static_cast<std::size_t>(worker)]; }
  void learn_total(std::uint64_t total);
  void free_undone(int worker, const StepRange& steps);
  void end_lease(int lessee);

  const Undone undone_;
  std::vector<Worker> workers_;
  std::optional<std::uint64_t> total_;
  bool stopped_ = false, over_ = false;
  std::vector<std::vector<std::uint64_t>> trained_by_others_;
};

}  // namespace duplex::net
