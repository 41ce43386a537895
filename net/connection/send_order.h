// The send order says which of the frames that wait for one connection may leave, and which of them
// goes next. It has neither threads nor a clock: connections ask it in real time (SendQueue),
// `simulate` in virtual time.
#pragma once
#include <chrono>
#include <cstdint>
#include <optional>
#include <vector>

#include "core/clock.h"
#include "net/topology/shard_map.h"
#include "net/wire/frame.h"

namespace duplex::net {

struct Outgoing {
  FrameHeader header;
  const float* payload = nullptr;
  std::vector<std::uint8_t> own;        ///< Payload of its own, if it has one.
  std::int64_t queued = 0;              ///< When it was handed over, in nanoseconds.
  std::uint64_t number = 0;             ///< Number in the order of handing over.
  std::uint64_t priority = 0;           ///< Of weights and gradients: the lowest of their round
                                        ///< goes first.
  std::size_t chunk = 0;                ///< Chunk::index of weights and gradients.
  std::size_t count = 0;                ///< Their values.
  const std::uint8_t* coded = nullptr;  ///< The payload as it crosses the wire, if it is coded.

  /// Makes a frame of a kind that has no payload.
  static Outgoing of(FrameKind kind, std::int64_t queued);
  /// Makes a frame of weights or a gradient, without payload and `queued`: the caller sets them.
  static Outgoing of(FrameKind kind, const Chunk& chunk, std::uint64_t step, std::uint64_t priority,
                     Coding coding);
};

/// Elements of the model by which gradients go ahead of new weights: the priority of weights is
/// their position plus this, that of gradients their position. While so many weights are still to
/// be sent, the links stay busy as the last gradients come in, later from one worker than from
/// another; in return the next forward begins later by the time that sending them takes. In strict
/// order it is the whole model, since every owner waits for all gradients before it publishes.
std::size_t head_start(std::size_t elements, bool overlap);

/// Urgent frames go first, then maps of a network that is cut, as they come, since a rank may have
/// nothing to compute without them, then weights and gradients, then background frames, which go
/// only while none of these wait, not even for a turn; then the frames that end the
/// connection. Among weights and gradients, those of an earlier round go first, then those of a
/// lower priority, then weights. New weights belong to the round whose gradients made them.
///
/// After take_turns(), gradients wait for the peer's `grant`, and weights for grant_weights(). The
/// order asks for a turn when it has such frames. It gives the turn for gradients back when it has
/// had none for a moment, or when those of another step come: a worker with short steps must not
/// keep it from the others. It steps aside from the turn for weights when it has none or another
/// should go first, and leaves it when a whole transfer is out.
class SendOrder {
 public:
  /// For so long a turn for gradients is kept with nothing to send, since more may be on its way
  /// here.
  static constexpr std::chrono::milliseconds linger{1};

  /// A request to the semaphore for weights (QueuedSemaphore), which the connection passes on.
  enum class TurnRequest { nothing, want, leave, step_aside, step_aside_waiting };

  /// `transfer`: number of frames of weights in one transfer; 0: weights take no turns.
  void take_turns(bool gradients, std::size_t transfer,
                  std::chrono::nanoseconds keep_gradients = linger);

  void urgent(Outgoing frame, bool first_of_all = false);
  std::size_t urgent_waiting() const { return urgent_.size(); }
  /// Numbers and queues weights, a gradient, or a map. Returns `want` or `nothing`, for the
  /// semaphore.
  TurnRequest data(Outgoing frame);
  void background(Outgoing frame);
  void last(Outgoing frame);

  /// Returns false if gradients had not asked for a turn.
  bool grant_gradients();
  void grant_weights();
  /// Another connection should send weights first, once the frame on its way is out.
  void want_weights_turn() { wanted_ = true; }

  /// Looks after the turns. Call it before take(), again and again, and tell the semaphore what it
  /// returns, until that is `nothing`.
  TurnRequest update_turns(Deadline now);
  /// Takes the first of the frames that may leave. Returns false if there is none.
  bool take(Outgoing& frame);
  /// When update_turns() will have something to do although nothing has been queued.
  std::optional<Deadline> look_again() const;
  /// Returns whether no frame waits at all, not even one that may not leave yet.
  bool empty() const;

 private:
  /// Returns whether frames of a kind may leave.
  enum class Turn { always, none, asked, held };
  using Heap = std::vector<Outgoing>;   ///< Ordered by after().
  using Queue = std::vector<Outgoing>;  ///< In order; seldom more than one.

  static bool after(const Outgoing& a, const Outgoing& b);
  void update_gradients_turn(Deadline now);
  TurnRequest update_weights_turn();

  Queue urgent_, background_, last_;
  Heap maps_, gradients_, weights_;
  Turn gradients_turn_ = Turn::always, weights_turn_ = Turn::always;
  std::chrono::nanoseconds linger_ = linger;
  Deadline keep_gradients_;                 ///< When a turn with nothing to send is given back.
  std::optional<std::uint64_t> turn_step_;  ///< The step whose gradients went in this turn.
  std::size_t transfer_ = 0, left_of_transfer_ = 0;  ///< Frames.
  bool wanted_ = false;                              ///< want_weights_turn() was called.
  bool gave_up_ = false;  ///< update_turns() has given up the turn for weights.
  std::uint64_t numbered_ = 0;
};

}  // namespace duplex::net
