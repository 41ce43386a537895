// The events of a GPU, and how the host waits for what it has asked of the GPU. A wait sleeps,
// since its core belongs to somebody: the loader of images, the wire, or another rank.
#pragma once
#include <array>
#include <memory>
#include <mutex>
#include <vector>

#include "core/cudnn/handle.h"

namespace duplex::cudnn {

/// Lends events, and lends those that have come back again: the driver takes microseconds to make
/// one, and a training asks for several for every copy. Any thread may use it. Its events may
/// outlive it.
class Events {
 private:
  struct Pool;

 public:
  /// Timed events know when the GPU passed them. The others cost it less.
  enum class Kind { untimed, timed };

  class GiveBack {
   public:
    GiveBack() = default;
    GiveBack(std::shared_ptr<Pool> pool, Kind kind) : pool_(std::move(pool)), kind_(kind) {}
    void operator()(cudaEvent_t event) const;

   private:
    std::shared_ptr<Pool> pool_;
    Kind kind_ = Kind::untimed;
  };
  /// An event that is lent. It may come back before the GPU has passed it: streams that were told
  /// to wait for it wait for what it marked then.
  using Event = std::unique_ptr<std::remove_pointer_t<cudaEvent_t>, GiveBack>;

  /// Returns an event that is recorded behind the work that `stream` already has. The GPU must be
  /// the calling thread's current one.
  Event recorded(cudaStream_t stream, Kind kind = Kind::untimed) const;

 private:
  struct Pool {
    std::mutex mutex;  ///< Guards `free`. Every thread that waits for a copy takes it.
    std::array<std::vector<Handle<cudaEvent_t>>, 2> free;  ///< By kind.
  };

  std::shared_ptr<Pool> pool_ = std::make_shared<Pool>();
};

using Event = Events::Event;

/// Has this process sleep, not spin, wherever the driver waits for the calling thread's current
/// GPU.
void sleep_in_waits();
/// Return when the GPU has passed the event, or has done all that the stream has. They look for it
/// for some microseconds, as long as it takes to wake a thread, and sleep from then on. Throw
/// Error("cuda: WHAT: why") if the GPU has failed.
void wait_for(cudaEvent_t event, const char* what);
void wait_for(cudaStream_t stream, const char* what);

}  // namespace duplex::cudnn
