// A store is what an owner does with its chunks: it collects the workers' gradients, applies the
// optimiser and publishes new weights, chunk by chunk. It knows of no connections.
#pragma once
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/clock.h"
#include "core/optimiser.h"
#include "net/coding/coding.h"
#include "net/store/applied_steps.h"
#include "net/store/mean.h"
#include "net/store/staleness.h"
#include "net/store/step_ranges.h"
#include "net/store/straggler_tally.h"
#include "net/topology/shard_map.h"
#include "net/wire/frame.h"

namespace duplex::net {

/// The rule by which gradients become weights.
enum class Sync {
  join,  ///< Hardsync (Algorithms 3.3, 3.4): one update by the mean (3.12) of one gradient of each.
  split,  ///< Like join, by gradients of the parts of one batch, weighted by their samples.
  none,   ///< Asynchronous (Downpour SGD, Algorithms 3.5, 3.6): each gradient is applied as it
          ///< comes.
};

/// Returns the codings that frames have behind the first weights: an asynchronous owner does not
/// know which weights a worker has, and so packs none.
inline WireFormat wire_of(WireFormat agreed, Sync sync) {
  if (sync == Sync::none && agreed.weights == Coding::lossless) agreed.weights = Coding::float32;
  return agreed;
}

Sync parse_sync(const std::string& name);  ///< Throws Error(Exit::usage).
const char* name_of(Sync sync);

/// Something that a store did with one chunk; times by clock_ns().
struct StoreWork {
  enum Kind { add, update } kind = add;
  std::size_t chunk = 0;
  std::uint64_t step = 0;  ///< Step of the gradient.
  int worker = 0;          ///< Worker of the gradient; the last one for an update by all gradients.
  std::int64_t from = 0, to = 0;
};

/// Bytes of early gradients, those that came before their turn to be added, that a dedicated server
/// keeps unless told otherwise. Workers that begin at different moments send different gradients
/// first: without room for these, all workers would wait for one, and the server's link with them.
constexpr std::size_t usual_early_bytes = std::size_t{64} << 20;

/// The bytes of early gradients that a server keeps if it owns `owned` bytes of weights and `least`
/// bytes are asked for: one of each gradient always has room.
inline std::size_t early_room(std::size_t owned, std::size_t least) {
  return std::max(owned, least);
}

/// The same for any owner; `trains`: it is a worker, too. A central server bounds the gradients
/// that it keeps, whatever the number of workers. A worker's connection carries gradients alone to
/// it, so one may wait for its turn while the others go on. Between ranks that are both worker and
/// owner a gradient must not wait: behind it may come new weights that this rank's worker needs
/// before it can submit its own gradient. There the bound is what the workers can send in a step,
/// which is less than one copy of the model's gradients.
inline std::size_t early_room_of(bool trains, std::size_t owned, int workers, std::size_t least) {
  return trains ? owned * static_cast<std::size_t>(workers) : early_room(owned, least);
}

/// All that an owner has of one chunk between two steps.
struct ChunkState {
  std::uint64_t step = 0;                     ///< Step that the weights are for.
  std::vector<float> weights;                 ///< Chunk::count of them.
  std::vector<std::vector<float>> optimiser;  ///< OptimiserSpec::states() of that size each.
  /// The gradients that are in the weights, by worker; only an asynchronous store has them.
  std::vector<AppliedSteps> applied;
};

/// This is what an asynchronous training has made of one chunk before it goes on from a checkpoint.
struct ChunkRecord {
  std::uint64_t updates = 0;          ///< Updates of the optimiser's state.
  std::vector<AppliedSteps> applied;  ///< By worker.
};

struct StoreSpec {
  Sync sync = Sync::join;
  int workers = 1;
  int own = -1;  ///< The worker on this rank, if there is one.
  /// Number of readers of each publication for every worker: they read the weights where they lie,
  /// and call sent() then.
  int readers = 0;
  MeanSpec mean;
  /// Workers push weights, and the new weights are their mean (parameter averaging).
  bool average = false;
  /// New weights are published when all of this owner's are there (asynchronous: all that answer
  /// one worker's gradients), not chunk by chunk.
  bool publish_together = false;
  OptimiserSpec optimiser;
  LearningRate rate;
  /// Step of the weights that a synchronous store begins with.
  std::uint64_t first_step = 0;
  /// The step that each worker of an asynchronous run begins with; empty: 0.
  std::vector<std::uint64_t> first_steps;
  /// This was made of each chunk before, by chunk; empty: nothing. A gradient that is in a chunk
  /// already is answered, and not applied again.
  std::vector<ChunkRecord> records;
  std::vector<Staleness> staleness_before;  ///< Of the steps before.
  /// A synchronous store keeps each chunk as it was before its last update, too.
  bool keeps_before = false;
  /// Says which parameters a synchronous store leaves alone, since every rank updates them; empty:
  /// none.
  std::function<bool(std::size_t parameter)> leaves;
  /// A synchronous store publishes updated weights packed against those before (Publication).
  bool packs = false;
  /// Fills in a chunk's part of the optimiser's state, which is zero before. May be empty.
  std::function<void(std::size_t chunk, const std::vector<float*>& state)> initial_state;
  /// Bytes that early gradients, which came before their turn, may take up; beyond it, reserve()
  /// waits.
  std::size_t early_bytes = 0;
  /// A wait of reserve() whose deadline has passed asks it for another one, which counts if it is
  /// still to come. May be empty.
  std::function<Deadline()> later;
  /// Called before reserve() waits for room, by a thread that holds no lock. May be empty.
  std::function<void(int worker)> on_wait;
  /// Called with each piece of work, by the thread that did it, which holds no lock. May be empty.
  std::function<void(const StoreWork&)> on_work;
};

/// The weights of a chunk for a step are ready.
struct Publication {
  std::size_t chunk = 0;
  std::uint64_t step = 0;
  int worker = 0;  ///< The worker that it is for, or Store::every_worker.
  /// The weights where they lie, until all workers that have read them have answered with a
  /// gradient. Null if they may change meanwhile: then Store::read() copies them as they are at
  /// that moment.
  const float* weights = nullptr;
  /// The weights packed against those that were published before (encode_weights), which stay where
  /// they lie for as long as the weights do; null: they are not.
  const std::uint8_t* packed = nullptr;
  std::size_t packed_bytes = 0;
  /// Nobody trains with them any more: an asynchronous store says so of what publish_last() sends.
  bool last = false;
};

/// Holds the chunks that one rank owns. Several threads may call functions at once, but one thread
/// makes the calls for one gradient (reserve, commit).
class Store {
 public:
  static constexpr int every_worker = -1;
  /// Called for the first step by publish_initial(), then by whichever thread completes an update,
  /// outside the store's locks.
  using Publish = std::function<void(const Publication&)>;
  using Time = Clock::time_point;

  virtual ~Store() = default;

  virtual void publish_initial() = 0;

  /// Returns where worker `worker` (0 .. workers-1) is to put its gradient of `step`; then call
  /// commit(). Throws ProtocolError if that gradient is not due: it is when the weights that it is
  /// computed from have been published (asynchronous: read) for that worker. Waits while there is
  /// no room, at most until `deadline`: then returns null, as after stop().
  virtual float* reserve(std::size_t chunk, int worker, std::uint64_t step, Time deadline) = 0;
  virtual void commit(std::size_t chunk, int worker) = 0;
  /// Does reserve, fill and commit in one: `gradient` is read where it lies and must not change
  /// until the next weights of the chunk are published.
  virtual void submit(std::size_t chunk, int worker, std::uint64_t step, const float* gradient) = 0;

  /// Copies the weights of a chunk, as they are now, for a worker that they were published for.
  virtual void read(std::size_t chunk, int worker, float* to) = 0;
  /// One of StoreSpec::readers has read the weights that were published last; see JoinStore.
  virtual void sent(std::size_t chunk) = 0;

  /// In an asynchronous run: the worker pushes no more, or is lost. Returns whether that is so of
  /// every worker. Throws ProtocolError for a worker that has not been lost if it has done so
  /// already, or lacks weights that answer its gradients.
  virtual bool done(int worker, bool lost) = 0;
  /// Sends those that are not lost all weights once more, for the step after the one that would be
  /// due, so that all ranks end with the same. This rank's own worker gets them last, since it says
  /// goodbye when it has them.
  virtual void publish_last() {}
  /// From its next step on, a worker that is done pushes the gradients of another's steps, under
  /// steps of its own.
  virtual void assign(int /*worker*/, const Lease& /*lease*/) {}
  /// A worker that was lost is back, and begins with that step; it gets all weights.
  virtual void begin_again(int /*worker*/, std::uint64_t /*step*/) {}
  /// Returns those of a worker's steps whose gradients are not in all chunks, in order.
  virtual std::vector<StepRange> undone(int /*worker*/, const StepRange& /*steps*/) const {
    return {};
  }

  /// The step that all chunks are of, where the worker has pushed no gradient of it; none: there is
  /// no such step.
  virtual std::optional<std::uint64_t> common_step(int worker) const = 0;
  /// Returns whether the worker has been given weights that answer all gradients that it has
  /// pushed, so that it may begin the next step or be done, or is done.
  virtual bool answered(int worker) const = 0;
  /// Returns whether it has had all that it is owed, so that it may say goodbye.
  virtual bool owes_nothing(int worker) const = 0;

  /// Returns the step that the weights of a chunk are for, which this rank owns; an asynchronous
  /// store's are of as many updates. Any thread may call it at any time, and state(), too.
  virtual std::uint64_t step_of(std::size_t chunk) const = 0;
  /// Copies the state of a chunk for that step: as it is now, or as it was before its last update
  /// where that was kept (StoreSpec::keeps_before); none: it is neither. Of an asynchronous store,
  /// `step` is not asked.
  virtual std::optional<ChunkState> state(std::size_t chunk, std::uint64_t step) const = 0;

  /// Ends all waiting in reserve() for good.
  virtual void stop() = 0;

  /// The chunk that has waited longest for gradients, and the workers whose gradients are missing.
  struct Overdue {
    std::size_t chunk = 0;
    std::uint64_t step = 0;
    std::vector<int> missing;
    double seconds = 0;
  };
  virtual std::optional<Overdue> overdue(Clock::duration allowed) const = 0;

  using Staleness = net::Staleness;
  /// Asynchronous stores count it, with what came before.
  virtual std::vector<Staleness> staleness() const { return {}; }
  /// The workers for whom everybody else waited, the most expensive first. Synchronous stores count
  /// them.
  virtual std::vector<StragglerTime> stragglers() const { return {}; }
};

/// The error for a gradient that is not due, with the reason.
ProtocolError refused_gradient(const Chunk& chunk, int worker, std::uint64_t step,
                               const std::string& why);

/// `weights` has every parameter as a whole; the chunks that `rank` owns are read at first, and
/// written by synchronous stores.
std::unique_ptr<Store> make_store(const ShardMap& map, int rank, const StoreSpec& spec,
                                  const std::vector<float*>& weights, Store::Publish publish);

}  // namespace duplex::net
