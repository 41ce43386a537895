// The synchronous store makes one update by the mean of one gradient of each worker.
#pragma once
#include <condition_variable>
#include <mutex>

#include "core/clock.h"
#include "net/store/buffer_pool.h"
#include "net/store/store.h"

namespace duplex::net {

/// Worker i's gradient of a chunk is added after those of workers 0 .. i-1, so that the sum has the
/// same bits whatever order they come in. The thread that delivers the last one updates and
/// publishes. The weights are updated in place. That is safe: by then every worker has pushed a
/// gradient of the chunk, which says that it no longer reads the weights of this step.
class JoinStore final : public Store {
 public:
  /// `weights` has every parameter as a whole; those of owned chunks are read and written.
  JoinStore(const ShardMap& map, int rank, const StoreSpec& spec, std::vector<float*> weights,
            Publish publish);

  void publish_initial() override;
  float* reserve(std::size_t chunk, int worker, std::uint64_t step, Time deadline) override;
  void commit(std::size_t chunk, int worker) override;
  void submit(std::size_t chunk, int worker, std::uint64_t step, const float* gradient) override;
  void read(std::size_t chunk, int worker, float* to) override;
  /// An update of a chunk begins only when all readers of the weights before have called this. That
  /// never delays anything, since the gradients that the update waits for are answers to those
  /// sends; it orders a sender's last read before the update.
  void sent(std::size_t chunk) override;
  void done(int, bool) override {}
  std::uint64_t step_of(std::size_t chunk) const override;
  std::optional<ChunkState> state(std::size_t chunk, std::uint64_t step) const override;
  void stop() override;
  std::optional<Overdue> overdue(Clock::duration allowed) const override;
  std::vector<StragglerTime> stragglers() const override { return tally_->sums(); }

 private:
  using Floats = std::unique_ptr<float[]>;

  struct Contribution {
    enum State { missing, arriving, here } state = missing;
    BufferPool::Buffer own;           ///< A received gradient.
    const float* borrowed = nullptr;  ///< The gradient of the worker on this rank.
    bool early = false;               ///< Counts against early_bytes.
  };
  struct Slot {
    /// Guards all below, with one exception: while `busy` is set, `sum`, `borrowed_sum`, `state`,
    /// `before`, the weights, and contributions that are `here` belong to the thread that set it,
    /// which adds and updates without the lock. The threads of connections, the one of local
    /// gradients and those that wait take it, and take no other lock meanwhile.
    mutable std::mutex mutex;
    std::uint64_t step = 0;  ///< Step of the published weights.
    std::vector<Contribution> contributions;
    int turn = 0;       ///< The worker whose gradient is added next.
    bool busy = false;  ///< A thread is adding or updating.
    int readers = 0;    ///< Readers of the published weights that have not called sent().
    BufferPool::Buffer sum;
    const float* borrowed_sum = nullptr;  ///< The sum so far is one borrowed gradient.
    std::vector<Floats> state;            ///< The optimiser's state.
    std::optional<ChunkState> before;     ///< With keeps_before: before the last update.
    Clock::time_point since;              ///< Time of this step's first contribution.
    bool open = false;                    ///< There is a first contribution.
  };

  /// Marks the contribution as arriving; throws ProtocolError if it is not due.
  Slot& due(std::size_t chunk, int worker, std::uint64_t step) const;
  /// Locks a slot at a moment when no thread adds or updates.
  static std::unique_lock<std::mutex> idle(const Slot& slot);
  static bool is_turn(const Slot& slot, int worker);
  void advance(std::size_t chunk);
  void add(std::size_t count, Slot& slot, Contribution& contribution);
  void update_weights(const Chunk& chunk, Slot& slot);
  void copy_state(std::size_t chunk, const Slot& slot, ChunkState& to) const;
  void publish(std::size_t chunk, std::uint64_t step);
  void publish_one(std::size_t chunk, std::uint64_t step);
  float* weights_of(const Chunk& chunk) const { return weights_[chunk.parameter] + chunk.offset; }
  void turn_has_come(std::size_t freed_bytes);

  const ShardMap& map_;
  StoreSpec spec_;
  std::vector<float*> weights_;
  Publish publish_;
  std::vector<std::unique_ptr<Slot>> slots_;  ///< By chunk; null where another rank owns it.
  std::vector<float> factor_;                 ///< By worker: factor of its gradient in the sum.
  float part_ = 1.0F;                         ///< Makes the sum the mean: 1 / sum of factor_.

  std::size_t owned_ = 0;      ///< Number of chunks that this rank owns.
  std::mutex together_mutex_;  ///< Guards updated_. The thread that updates takes it.
  std::size_t updated_ = 0;    ///< Chunks updated in this step, for publish_together.

  /// Guards early_used_ and stopped_. reserve() holds it while it asks whose turn it is, so that it
  /// misses no turn that comes: it is taken before a slot's mutex, never inside one.
  std::mutex room_mutex_;
  std::condition_variable room_;
  std::size_t early_used_ = 0;
  bool stopped_ = false;
  BufferPool pool_;
  std::optional<StragglerTally> tally_;  ///< Set by the constructor.
};

}  // namespace duplex::net
