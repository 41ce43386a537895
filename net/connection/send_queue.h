// What waits to be sent over one connection: SendOrder, for the threads that hand frames over and
// the one that sends them.
#pragma once
#include <condition_variable>
#include <functional>
#include <mutex>

#include "net/connection/send_order.h"

namespace duplex::net {

class SendQueue {
 public:
  /// Tells the owner of the semaphore for weights: `want` from data(), so that connections ask in
  /// the order in which they are given weights, the rest from take() and next(). Outside the lock.
  using WeightsTurn = std::function<void(SendOrder::Tell)>;

  /// As SendOrder has it.
  void take_turns(bool gradients, std::size_t transfer, WeightsTurn turn);

  void urgent(Outgoing frame, bool first_of_all = false);
  void data(Outgoing frame);
  void last(Outgoing frame);

  /// False: nobody had asked.
  bool grant_gradients();
  void grant_weights();
  /// Another should send weights first, when the frame on its way is out.
  void want_weights_turn();

  /// The frame that is to leave next; false: none may leave now. Called by one thread, as next(),
  /// which has sent the frame before when it calls again, and calls next() after false.
  bool take(Outgoing& frame);
  /// Waits for it, at most until `deadline`: then a sign of life. False: closed.
  bool next(Outgoing& frame, Deadline deadline);
  void close();
  /// Waits until nothing is queued or on its way out, or the queue is closed. False: not by then.
  bool wait_until_idle(Deadline deadline);

 private:
  bool take_now(std::unique_lock<std::mutex>& lock, Outgoing& frame);

  std::mutex mutex_;  ///< Guards all below but turn_, which is set before threads start.
  std::condition_variable changed_;
  SendOrder order_;
  WeightsTurn turn_;
  bool busy_ = false;  ///< A frame is on its way out.
  bool closed_ = false;
};

}  // namespace duplex::net
