// The send queue of one connection: the send order for the threads that hand frames over and the
// one that sends them.
#pragma once
#include <condition_variable>
#include <functional>
#include <mutex>

#include "net/connection/send_order.h"

namespace duplex::net {

class SendQueue {
 public:
  /// Tells the semaphore for weights what this queue wants, without holding the lock: `want` from
  /// data(), so that connections ask in the order in which they are given weights, the rest from
  /// take() and next().
  using WeightsTurn = std::function<void(SendOrder::TurnRequest)>;

  /// See SendOrder::take_turns().
  void take_turns(bool gradients, std::size_t transfer, WeightsTurn turn);

  void urgent(Outgoing frame, bool first_of_all = false);
  void data(Outgoing frame);
  void last(Outgoing frame);

  /// Returns false if gradients had not asked for a turn.
  bool grant_gradients();
  void grant_weights();
  /// Another connection should send weights first, once the frame on its way is out.
  void want_weights_turn();

  /// Takes the frame that is to leave next; returns false if none may leave now. One thread calls
  /// take() and next(); it has sent the frame before when it calls again, and calls next() after
  /// false.
  bool take(Outgoing& frame);
  /// Waits for the next frame, and makes a heartbeat at `deadline`. Returns false once closed.
  bool next(Outgoing& frame, Deadline deadline);
  void close();
  /// Waits until nothing is queued or on its way out, or the queue is closed. Returns false if the
  /// deadline comes first.
  bool wait_until_idle(Deadline deadline);

 private:
  bool take_now(std::unique_lock<std::mutex>& lock, Outgoing& frame);

  std::mutex mutex_;  ///< Guards all below but turn_, which is set before threads start. Any
                      ///< thread takes it, and takes no other lock meanwhile.
  std::condition_variable changed_;
  SendOrder order_;
  WeightsTurn turn_;
  bool busy_ = false;  ///< A frame is on its way out.
  bool closed_ = false;
};

}  // namespace duplex::net
