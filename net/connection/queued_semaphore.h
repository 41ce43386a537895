// A semaphore of one with a queue (thesis, 7.2): one worker of a server at a time has the link.
#pragma once
#include <deque>
#include <functional>
#include <mutex>
#include <optional>

namespace duplex::net {

/// Serves in the order of asking. No call blocks: the semaphore calls `granted` when it is
/// somebody's turn, and `wanted` when somebody waits again who comes before the holder. It calls
/// them from the thread whose call made it so, and holds no lock meanwhile.
class QueuedSemaphore {
 public:
  using Callback = std::function<void(int who)>;
  /// `granted`: it is the turn of `who`. `wanted`: the holder, `who`, should step aside when it
  /// can.
  QueuedSemaphore(Callback granted, Callback wanted)
      : granted_(std::move(granted)), wanted_(std::move(wanted)) {}

  /// Takes the place that `who` has kept in the queue, or the last one. Returns false if `who`
  /// waits already or holds the turn.
  bool ask(int who);
  /// Gives the turn to others, and keeps the place in the queue. `waits`: `who` goes on waiting
  /// there; otherwise it waits only when it asks again. Does nothing if `who` does not hold the
  /// turn.
  void step_aside(int who, bool waits);
  /// Gives up the turn and the place of `who`, if it has them.
  void leave(int who);

  /// Returns whether `who` has a place, and whether it waits there for its turn.
  bool has_place(int who) const;
  bool waits(int who) const;
  /// The one who has the turn, if another waits for it.
  std::optional<int> awaited() const;

 private:
  struct Place {
    int who;
    bool waits;  ///< True of the holder too.
  };
  static constexpr int nobody = -1;
  std::deque<Place>::iterator place_of(int who);
  std::deque<Place>::const_iterator place_of(int who) const;
  void grant_next(std::unique_lock<std::mutex> lock);

  const Callback granted_, wanted_;
  /// Guards all below. The threads of all connections take it, and take no other lock meanwhile.
  mutable std::mutex mutex_;
  int holder_ = nobody;
  std::deque<Place> queue_;  ///< All who have a place, with the holder.
};

}  // namespace duplex::net
