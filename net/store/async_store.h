// The asynchronous store (Downpour SGD, Algorithms 3.5, 3.6) applies every gradient as it comes.
#pragma once
#include <mutex>

#include "core/clock.h"
#include "core/tensor.h"
#include "net/store/store.h"

namespace duplex::net {

/// Worker i's gradient of step s is applied once, when the worker has been given the weights of
/// that step, to the weights as they then are. It is answered
/// with the weights for the worker's step s + 1, as they are when they leave; with
/// publish_together, that is when the worker's gradients of all chunks are applied. No worker waits
/// for another. The store keeps weights of its own, so that a worker on the same rank computes with
/// what it was given while others' gradients are applied.
class AsyncStore final : public Store {
 public:
  AsyncStore(const ShardMap& map, int rank, const StoreSpec& spec,
             const std::vector<float*>& weights, Publish publish);

  void publish_initial() override;
  float* reserve(std::size_t chunk, int worker, std::uint64_t step, Time deadline) override;
  void commit(std::size_t chunk, int worker) override;
  void submit(std::size_t chunk, int worker, std::uint64_t step, const float* gradient) override;
  void read(std::size_t chunk, int worker, float* to) override;
  void sent(std::size_t) override {}
  bool done(int worker, bool lost) override;
  void publish_last() override;
  void assign(int worker, const Lease& lease) override;
  void begin_again(int worker, std::uint64_t step) override;
  std::vector<StepRange> undone(int worker, const StepRange& steps) const override;
  std::optional<std::uint64_t> common_step(int) const override { return {}; }
  bool answered(int worker) const override;
  bool owes_nothing(int worker) const override;
  std::uint64_t step_of(std::size_t chunk) const override;
  std::optional<ChunkState> state(std::size_t chunk, std::uint64_t step) const override;
  void stop() override {}
  std::optional<Overdue> overdue(Clock::duration) const override { return {}; }
  std::vector<Staleness> staleness() const override;

 private:
  using Floats = std::vector<float>;

  struct Slot {
    std::mutex mutex;       ///< Guards the slot. Any thread takes it, and takes no other meanwhile.
    std::size_t count = 0;  ///< Elements of each of these.
    float* weights = nullptr;
    std::vector<float*> state;  ///< The optimiser's state.
    std::uint64_t updates = 0;
    std::vector<std::uint64_t> due;     ///< By worker: the step whose gradient comes next.
    std::vector<AppliedSteps> applied;  ///< By worker: the gradients that are in the weights.
    std::vector<std::uint64_t> seen;    ///< By worker: updates that are in the weights that it has.
    std::vector<bool> given;            ///< By worker: it has been given the weights that are due
                                        ///< to it, and they have been answered by no gradient.
  };
  /// A worker's gradient is received into it, one at a time.
  struct ReceiveBuffer {
    Floats buffer;
    std::uint64_t step = 0;
  };

  /// A step of the worker whose batch it is.
  struct Batch {
    int worker = 0;
    std::uint64_t step = 0;
  };
  /// From `from` on, the steps that a worker counts are others'.
  struct Assigned {
    std::uint64_t from = 0;
    Lease lease;
  };

  Slot& due(std::size_t chunk, int worker, std::uint64_t step) const;
  bool has_all(int worker) const;
  void apply(std::size_t chunk, int worker, std::uint64_t step, const float* gradient);
  void answer(std::size_t chunk, int worker, std::uint64_t step);
  void publish_last(int worker);
  std::uint64_t due_step(int worker) const;
  Batch batch_of(int worker, std::uint64_t step) const;
  void note(int worker, std::uint64_t step, std::uint64_t behind);

  const ShardMap& map_;
  StoreSpec spec_;
  Publish publish_;
  Buffer memory_;  ///< The weights and the optimiser's state of all chunks of this rank.
  std::vector<std::unique_ptr<Slot>> slots_;    ///< By chunk; null where another rank owns it.
  std::vector<ReceiveBuffer> receive_buffers_;  ///< By worker.
  std::size_t owned_ = 0;                       ///< Number of chunks that this rank owns.
  std::vector<std::size_t> applied_;            ///< By worker, for publish_together: chunks
                                                ///< applied.
  /// Guards the next four; any thread takes it, as its only lock.
  mutable std::mutex done_mutex_;
  std::vector<bool> done_, lost_;  ///< By worker.
  std::vector<bool> last_;         ///< By worker: what it is given now are its last weights.
  std::vector<std::optional<Assigned>> assigned_;  ///< By worker: its last lease.
  mutable std::mutex staleness_mutex_;  ///< Guards staleness_; any thread takes it, as its only
                                        ///< lock.
  StalenessTally staleness_;
};

}  // namespace duplex::net
