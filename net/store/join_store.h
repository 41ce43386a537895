// The synchronous store makes one update by the mean of one gradient of each worker.
#pragma once
#include <atomic>
#include <condition_variable>
#include <mutex>

#include "core/clock.h"
#include "net/store/buffer_pool.h"
#include "net/store/store.h"

namespace duplex::net {

/// Worker i's gradient of a chunk is added after those of the workers before it that train with the
/// chunk's parameter, so that the sum has the same bits whatever order they come in. The thread
/// that delivers the last one updates and publishes. The weights are updated in place. That is
/// safe: by then every worker has pushed a gradient of the chunk, which says that it no longer
/// reads the weights of this step.
class JoinStore final : public Store {
 public:
  /// `weights` has every parameter as a whole; those of owned chunks are read and written.
  JoinStore(const ShardMap& map, int rank, const StoreSpec& spec,
            const std::vector<float*>& weights, Publish publish);

  void publish_initial() override;
  float* reserve(std::size_t chunk, int worker, std::uint64_t step, Time deadline) override;
  void commit(std::size_t chunk, int worker) override;
  void submit(std::size_t chunk, int worker, std::uint64_t step, const float* gradient) override;
  void read(std::size_t chunk, int worker, float* to) override;
  /// An update of a chunk begins only when all readers of the weights before have called this. That
  /// never delays anything, since the gradients that the update waits for are answers to those
  /// sends; it orders a sender's last read before the update.
  void sent(std::size_t chunk) override;
  bool done(int, bool) override { return false; }
  std::optional<std::uint64_t> common_step(int worker) const override;
  bool answered(int worker) const override {
    return gradients_[static_cast<std::size_t>(worker)] == 0 || common_step(worker).has_value();
  }
  bool owes_nothing(int worker) const override { return answered(worker); }
  std::uint64_t step_of(std::size_t chunk) const override;
  std::optional<ChunkState> state(std::size_t chunk, std::uint64_t step) const override;
  void stop() override;
  std::optional<Overdue> overdue(Clock::duration allowed) const override;
  std::vector<StragglerTime> stragglers() const override { return tally_->sums(); }

 private:
  struct Contribution {
    enum State { missing, receiving, ready } state = missing;
    BufferPool::Buffer own;           ///< A received gradient.
    const float* borrowed = nullptr;  ///< The gradient of the worker on this rank.
    std::size_t early_bytes = 0;      ///< Those of it that count in early_used_.
  };
  struct Slot {
    Slot(const Chunk& of, float* where) : chunk(of), weights(where) {}

    const Chunk& chunk;
    float* const weights;
    std::vector<int> workers;  ///< Those that train with it, ascending.
    /// Guards all below, with one exception: while `busy` is set, `turn`, `sum`, `borrowed_sum`,
    /// `state`, `before`, the weights, and contributions that are `ready` belong to the thread that
    /// set it, which adds and updates without the lock. The threads of connections, the one of
    /// local gradients and those that wait take it, and take no other lock meanwhile but that of
    /// tally_.
    mutable std::mutex mutex;
    std::uint64_t step = 0;                   ///< Step of the published weights.
    std::vector<Contribution> contributions;  ///< Of `workers`.
    /// The place in `workers` of the one whose gradient is added next; any thread reads it.
    std::atomic<std::size_t> turn{0};
    bool busy = false;  ///< A thread is adding or updating.
    bool held = false;  ///< The weights are new and not published yet.
    int readers = 0;    ///< Readers of the published weights that have not called sent().
    BufferPool::Buffer sum;
    const float* borrowed_sum = nullptr;  ///< The sum so far is one borrowed gradient.
    std::vector<float*> state;            ///< The optimiser's state.
    std::optional<ChunkState> before;     ///< With keeps_before: before the last update.
    /// With packs it holds the weights, packed against those before. It is written while `busy` is
    /// set, and read without the lock, by whoever publishes and by senders until all readers have
    /// called sent().
    std::vector<std::uint8_t> packed;
    std::size_t packed_bytes = 0;  ///< 0: there are none.
    Clock::time_point since;       ///< Time of this step's first contribution.
    bool open = false;             ///< There is a first contribution.
  };

  /// A worker's contribution to a slot.
  struct Begun {
    Slot& slot;
    std::size_t place;  ///< In Slot::workers.
  };
  Begun begin_contribution(std::size_t chunk, int worker, std::uint64_t step) const;
  std::optional<std::size_t> wait_for_room(const Begun& begun, Time deadline);
  static std::size_t place_of(const Slot& slot, int worker);
  int readers_of(const Slot& slot) const;
  /// Says that workers of other ranks train with it, so that its weights cross the wire.
  bool leaves_rank(const Slot& slot) const;
  /// Locks a slot at a moment when no thread adds or updates.
  static std::unique_lock<std::mutex> idle(const Slot& slot);
  void advance(Slot& slot, std::unique_lock<std::mutex> lock);
  void add(Slot& slot, Contribution& contribution);
  void update_weights(Slot& slot);
  static void copy_state(const Slot& slot, ChunkState& to);
  void publish(Slot& updated, std::uint64_t step);
  void publish_one(Slot& slot, std::uint64_t step);

  const ShardMap& map_;
  StoreSpec spec_;
  Publish publish_;
  Buffer state_;                              ///< The optimiser's state of all chunks of this rank.
  std::vector<std::unique_ptr<Slot>> slots_;  ///< By chunk; null where another rank owns it.
  std::vector<float> factor_;                 ///< By worker: factor of its gradient in the sum.
  float part_ = 1.0F;                         ///< Makes the sum the mean: 1 / sum of factor_.

  std::size_t owned_ = 0;  ///< Number of chunks that this rank owns.
  /// By worker: those of them that it trains with.
  std::vector<std::size_t> gradients_;
  std::mutex together_mutex_;  ///< Guards updated_. The thread that updates takes it.
  std::size_t updated_ = 0;    ///< Chunks updated in this step, for publish_together.

  /// Guards early_used_ and stopped_. A turn comes before this is taken to tell of it, so that who
  /// waits for room or for its turn misses neither. It is taken while no other lock is held.
  std::mutex room_mutex_;
  std::condition_variable room_;
  std::size_t early_used_ = 0;
  bool stopped_ = false;
  BufferPool pool_;
  std::optional<StragglerTally> tally_;  ///< Set by the constructor.
};

}  // namespace duplex::net
