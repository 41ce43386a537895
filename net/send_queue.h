// What waits to be sent over one connection, and which of it may go and goes next.
#pragma once
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <vector>

#include "net/frame.h"
#include "net/socket.h"

namespace duplex::net {

struct Outgoing {
  FrameHeader header;
  const void* payload = nullptr;
  std::vector<std::uint8_t> own;  ///< Payload of its own, where there is one.
  std::int64_t queued = 0;        ///< now_ns() when it was handed over: of() or data() says.
  std::uint64_t number = 0;       ///< In the order of handing over.
  std::uint64_t place = 0;        ///< Of weights and gradients, in their round.

  /// Of a kind, with what has no payload.
  static Outgoing of(FrameKind kind);
};

/// Urgent frames go first, then weights and gradients, then what ends the connection. Of weights
/// and gradients, those of an earlier round go first, then those of a lower place, then weights.
/// New weights count to the round whose gradients made them.
///
/// With take_turns, gradients wait for the peer's `grant`, and weights until the owner says so. The
/// queue asks for a turn when it has such frames. It gives that for gradients back when it has had
/// none for a moment; from that for weights it steps aside when it has none, or another should go
/// first, until a whole transfer has left.
class SendQueue {
 public:
  /// The owner of the semaphore for weights is asked and told through these: asked from data(), so
  /// that connections ask in the order in which they are given weights, and told from next().
  struct WeightsTurn {
    std::function<void()> want, leave;
    std::function<void(bool waits)> step_aside;
  };

  /// `transfer`: frames of weights that are one transfer; 0: weights take no turns.
  void take_turns(bool gradients, std::size_t transfer, WeightsTurn turn);

  void urgent(Outgoing frame, bool first_of_all = false);
  void data(Outgoing frame);
  void last(Outgoing frame);

  /// False: nobody had asked.
  bool grant_gradients();
  void grant_weights();
  /// Another should send weights first, when the frame on its way is out.
  void want_weights_turn();

  /// Waits for the frame that is to leave next, at most until `deadline`: then a sign of life.
  /// False: closed. Called by one thread, which has sent the frame before when it calls again.
  bool next(Outgoing& frame, Deadline deadline);
  void close();
  /// Waits until nothing is queued or on its way out, or the queue is closed. False: not by then.
  bool wait_until_idle(Deadline deadline);

 private:
  /// Whether frames of a kind may leave.
  enum class Turn { always, none, asked, held };
  using Heap = std::vector<Outgoing>;  ///< By after().

  static bool after(const Outgoing& a, const Outgoing& b);
  bool idle() const;
  void mind_gradients();
  bool mind_weights(std::unique_lock<std::mutex>& lock);
  bool take_first(Outgoing& frame);

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Outgoing> urgent_, last_;
  Heap gradients_, weights_;
  Turn gradients_turn_ = Turn::always, weights_turn_ = Turn::always;
  Deadline keep_gradients_;  ///< How long a turn is kept with nothing to send.
  WeightsTurn turn_;
  std::size_t transfer_ = 0, left_of_transfer_ = 0;  ///< Frames.
  bool wanted_ = false;                              ///< want_weights_turn()
  std::uint64_t numbered_ = 0;
  bool busy_ = false;  ///< A frame is on its way out.
  bool closed_ = false;
};

}  // namespace duplex::net
