// The send queue of one connection: the send order for the threads that hand frames over and the
// one that sends them.
#pragma once
#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>

#include "net/connection/send_order.h"

namespace duplex::net {

class SendQueue {
 public:
  /// Tells the semaphore for weights what this queue wants, without holding the lock: `want` from
  /// data(), so that connections ask in the order in which they are given weights, the rest from
  /// take().
  using WeightsTurn = std::function<void(SendOrder::TurnRequest)>;

  /// See SendOrder::take_turns().
  void take_turns(bool gradients, std::size_t transfer, WeightsTurn turn);

  /// Urgent frames that may wait. They answer what a peer says or tell it what has changed, so that
  /// one who takes any has few of them.
  static constexpr std::size_t most_urgent = 1024;

  /// Returns false, and drops the frame, where too many wait. The first of all always has room.
  bool urgent(Outgoing frame, bool first_of_all = false);
  void data(Outgoing frame);
  void background(Outgoing frame);
  void last(Outgoing frame);

  /// Returns false if gradients had not asked for a turn.
  bool grant_gradients();
  void grant_weights();
  /// Another connection should send weights first, once the frame on its way is out.
  void want_weights_turn();

  /// Takes the frame that is to leave next. If none may leave now, returns false, or, with a
  /// deadline, waits for one and makes a heartbeat at the deadline. Returns false once closed, too.
  /// One thread calls it, which has sent the frame before when it calls again.
  bool take(Outgoing& frame, std::optional<Deadline> deadline = std::nullopt);
  void close();
  /// Waits until nothing is queued or on its way out, or the queue is closed. Returns false if the
  /// deadline comes first.
  bool wait_until_idle(Deadline deadline);

 private:
  std::mutex mutex_;  ///< Guards all below but turn_, which is set before threads start. Any
                      ///< thread takes it, and takes no other lock meanwhile.
  std::condition_variable changed_;
  SendOrder order_;
  WeightsTurn turn_;   ///< Empty without take_turns(): no frame waits for a turn.
  bool busy_ = false;  ///< A frame is on its way out.
  bool closed_ = false;
};

}  // namespace duplex::net
