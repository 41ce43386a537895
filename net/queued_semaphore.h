// A semaphore of one with a queue (thesis, 7.2): of the workers of a server, one at a time has the
// link.
#pragma once
#include <deque>
#include <functional>
#include <mutex>

namespace duplex::net {

/// Who asks first is served first. Nobody sleeps in it: `granted` tells that it is somebody's turn,
/// from the thread whose call made it so, outside the semaphore's lock.
class QueuedSemaphore {
 public:
  using Granted = std::function<void(int who)>;
  explicit QueuedSemaphore(Granted granted) : granted_(std::move(granted)) {}

  /// False: `who` has asked already, and has not left since.
  bool ask(int who);
  /// Gives up the turn, or the place in the queue, or nothing.
  void leave(int who);

 private:
  static constexpr int nobody = -1;

  const Granted granted_;
  std::mutex mutex_;
  int holder_ = nobody;
  std::deque<int> queue_;
};

}  // namespace duplex::net
