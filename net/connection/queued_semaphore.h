// A semaphore of one with a queue (thesis, 7.2): of the workers of a server, one at a time has the
// link.
#pragma once
#include <deque>
#include <functional>
#include <mutex>

namespace duplex::net {

/// Who asks first is served first. Nobody sleeps in it: it tells that it is somebody's turn, or
/// that one who had to wait comes first after all, from the thread whose call made it so, outside
/// the semaphore's lock.
class QueuedSemaphore {
 public:
  using Tell = std::function<void(int who)>;
  /// `granted`: it is the turn of `who`. `wanted`: the holder should step aside when it can.
  QueuedSemaphore(Tell granted, Tell wanted)
      : granted_(std::move(granted)), wanted_(std::move(wanted)) {}

  /// Takes the place that `who` has kept, or the last one. False: it waits already, or holds.
  bool ask(int who);
  /// Lets others go, and keeps the place: in it `who` goes on waiting, or does so when it asks.
  void step_aside(int who, bool waits);
  /// Gives up the turn and the place, or nothing.
  void leave(int who);

 private:
  struct Place {
    int who;
    bool waits;  ///< Or holds.
  };
  static constexpr int nobody = -1;
  std::deque<Place>::iterator place_of(int who);
  void grant_next(std::unique_lock<std::mutex> lock);

  const Tell granted_, wanted_;
  std::mutex mutex_;
  int holder_ = nobody;
  std::deque<Place> queue_;  ///< The holder too.
};

}  // namespace duplex::net
