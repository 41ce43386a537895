// A store: what an owner does with its chunks. Collects the workers' gradients, applies the
// optimiser, publishes new weights; chunk by chunk, without knowing of sockets.
#pragma once
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "core/optimiser.h"
#include "net/frame.h"
#include "net/shard_map.h"

namespace duplex::net {

/// The rule by which gradients become weights.
enum class Sync {
  join,  ///< Hardsync (Algorithms 3.3, 3.4): one update by the mean (3.12) of one gradient of each.
};

Sync parse_sync(const std::string& name);  ///< Throws Error(Exit::usage).
const char* name_of(Sync sync);

struct StoreSpec {
  Sync sync = Sync::join;
  int workers = 1;
  OptimiserSpec optimiser;
  LearningRate rate;
  /// Bytes that gradients which came before their turn may take up; beyond it, place() waits.
  std::size_t early_bytes = 0;
};

/// Of the chunks that `rank` owns. Functions may be called by several threads at once; those that
/// concern one contribution (place, arrived), by one.
///
/// Join. Worker i's gradient of a chunk is added after those of workers 0 .. i-1 have been, so that
/// the sum has the same bits whatever order they come in. The thread that delivers the last one
/// updates and publishes. The weights are updated in place: that is safe since by then every worker
/// has pushed a gradient of the chunk and thereby said that it no longer reads the weights of this
/// step.
class Store {
 public:
  /// The weights of `chunk` for `step` are complete. Called for step 0 by publish_initial().
  using Publish = std::function<void(std::size_t chunk, std::uint64_t step)>;

  /// `weights`: of every parameter, whole; those of owned chunks are read and written.
  Store(const ShardMap& map, int rank, const StoreSpec& spec, std::vector<float*> weights,
        Publish publish);

  void publish_initial();

  /// Where worker `worker` (0 .. workers-1) is to put its gradient of `step`; then arrived().
  /// Throws ProtocolError if that gradient is not due. Waits while there is no room, at most until
  /// `deadline`: then returns null, as after stop().
  float* place(std::size_t chunk, int worker, std::uint64_t step,
               std::chrono::steady_clock::time_point deadline);
  void arrived(std::size_t chunk, int worker);
  /// place, fill and arrived in one: `gradient` is read where it lies and must stay unchanged until
  /// the next weights of the chunk are published.
  void give(std::size_t chunk, int worker, std::uint64_t step, const float* gradient);

  /// The weights of a chunk are still read by `count` senders: no update begins until sent() has
  /// been called as often. For the join rule this never delays anything (the gradients that the
  /// update waits for are answers to those sends); it orders the sender's last read before the
  /// update.
  void sending(std::size_t chunk, int count);
  void sent(std::size_t chunk);

  /// Ends all waiting in place(), for good.
  void stop();

  /// A chunk that has waited longest for gradients, and whose are missing.
  struct Overdue {
    std::size_t chunk = 0;
    std::uint64_t step = 0;
    std::vector<int> missing;
    double seconds = 0;
  };
  std::optional<Overdue> overdue(std::chrono::steady_clock::duration allowed) const;

 private:
  using Floats = std::unique_ptr<float[]>;

  struct Contribution {
    enum State { missing, arriving, here } state = missing;
    Floats own;                   ///< Received.
    const float* lent = nullptr;  ///< Given by the worker of this rank.
    bool early = false;           ///< Counts against early_bytes.
  };
  struct Slot {
    mutable std::mutex mutex;
    std::uint64_t step = 0;  ///< Of the weights that are out.
    std::vector<Contribution> contributions;
    int turn = 0;       ///< The worker whose gradient is added next.
    bool busy = false;  ///< A thread is adding.
    int senders = 0;    ///< Still read the weights.
    Floats sum;
    const float* lent_sum = nullptr;              ///< The sum so far is one lent gradient.
    std::vector<Floats> state;                    ///< The optimiser's.
    std::chrono::steady_clock::time_point since;  ///< First contribution of this step.
    bool open = false;                            ///< There is a first contribution.
  };

  /// Marks the contribution as arriving; throws ProtocolError if it is not due.
  Slot& due(std::size_t chunk, int worker, std::uint64_t step) const;
  static bool is_turn(const Slot& slot, int worker);
  void advance(std::size_t chunk);
  void add(std::size_t count, Slot& slot, Contribution& contribution);
  void update_weights(const Chunk& chunk, Slot& slot);
  void turn_has_come(std::size_t freed_bytes);
  Floats take_buffer(std::size_t count);
  void return_buffer(std::size_t count, Floats buffer);

  const ShardMap& map_;
  StoreSpec spec_;
  std::vector<float*> weights_;
  Publish publish_;
  std::vector<std::unique_ptr<Slot>> slots_;  ///< By chunk; null where another rank owns it.

  std::mutex room_mutex_;
  std::condition_variable room_;
  std::size_t early_used_ = 0;
  bool stopped_ = false;
  std::mutex pool_mutex_;
  std::map<std::size_t, std::vector<Floats>> pool_;  ///< Buffers of a size that are free.
};

}  // namespace duplex::net
