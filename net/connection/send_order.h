// Which of the frames that wait for one connection may leave, and which of them goes next. It knows
// neither threads nor a clock: connections ask it in real time (SendQueue), `simulate` in its own.
#pragma once
#include <chrono>
#include <cstdint>
#include <optional>
#include <vector>

#include "net/topology/shard_map.h"
#include "net/wire/frame.h"
#include "net/wire/socket.h"

namespace duplex::net {

struct Outgoing {
  FrameHeader header;
  const void* payload = nullptr;
  std::vector<std::uint8_t> own;  ///< Payload of its own, where there is one.
  std::int64_t queued = 0;        ///< Nanoseconds, when it was handed over.
  std::uint64_t number = 0;       ///< In the order of handing over.
  std::uint64_t place = 0;        ///< Of weights and gradients, in their round.
  std::size_t chunk = 0;          ///< Of weights and gradients: Chunk::index.

  /// Of a kind that has no payload.
  static Outgoing of(FrameKind kind, std::int64_t queued);
  /// Weights or a gradient. The payload and `queued` are left to be told.
  static Outgoing of(FrameKind kind, const Chunk& chunk, std::uint64_t step, std::uint64_t place);
};

/// The round of weights and gradients, by which they are sent: new weights count to the one whose
/// gradients made them; the first ones are a round before all.
std::uint64_t round_of(const FrameHeader& header);

/// Elements of the model by which gradients go ahead of new weights: the place of weights is their
/// position and this, that of gradients their position. With weights of so many still to send, the
/// links stay busy while the last gradients come in, later from one worker than from another; the
/// next forward begins later by what it takes to send them. In strict order: all, since every owner
/// waits for all gradients before it publishes.
std::size_t head_start(std::size_t elements, bool overlap);

/// Urgent frames go first, then weights and gradients, then what ends the connection. Of weights
/// and gradients, those of an earlier round go first, then those of a lower place, then weights.
/// New weights count to the round whose gradients made them.
///
/// With take_turns, gradients wait for the peer's `grant`, and weights until the owner says so. The
/// order asks for a turn when it has such frames. It gives that for gradients back when it has had
/// none for a moment; from that for weights it steps aside when it has none, or another should go
/// first, until a whole transfer has left.
class SendOrder {
 public:
  /// How long a turn for gradients outlasts what there was to send: more may be on its way here.
  static constexpr std::chrono::milliseconds linger{1};

  /// What the owner of the semaphore for weights is to be told (QueuedSemaphore).
  enum class Tell { nothing, want, leave, step_aside, step_aside_waiting };

  /// `transfer`: frames of weights that are one transfer; 0: weights take no turns.
  void take_turns(bool gradients, std::size_t transfer,
                  std::chrono::nanoseconds keep_gradients = linger);

  void urgent(Outgoing frame, bool first_of_all = false);
  /// Numbers it. `want` or `nothing` is to be told.
  Tell data(Outgoing frame);
  void last(Outgoing frame);

  /// False: nobody had asked.
  bool grant_gradients();
  void grant_weights();
  /// Another should send weights first, when the frame on its way is out.
  void want_weights_turn() { wanted_ = true; }

  /// Minds the turns, before take(): again and again, telling the owner of what it returns, until
  /// that is nothing.
  Tell mind(Deadline now);
  /// The first of those frames that may leave. False: there is none.
  bool take(Outgoing& frame);
  /// When mind() will have something to do though nothing has come.
  std::optional<Deadline> look_again() const;
  /// Nothing waits, whether it may leave or not.
  bool empty() const;

 private:
  /// Whether frames of a kind may leave.
  enum class Turn { always, none, asked, held };
  using Heap = std::vector<Outgoing>;   ///< By after().
  using Queue = std::vector<Outgoing>;  ///< In order; seldom more than one.

  static bool after(const Outgoing& a, const Outgoing& b);
  void mind_gradients(Deadline now);
  Tell mind_weights();

  Queue urgent_, last_;
  Heap gradients_, weights_;
  Turn gradients_turn_ = Turn::always, weights_turn_ = Turn::always;
  std::chrono::nanoseconds linger_ = linger;
  Deadline keep_gradients_;  ///< How long a turn is kept with nothing to send.
  std::size_t transfer_ = 0, left_of_transfer_ = 0;  ///< Frames.
  bool wanted_ = false;                              ///< want_weights_turn()
  bool gave_up_ = false;                             ///< The turn for weights, by mind() before.
  std::uint64_t numbered_ = 0;
};

}  // namespace duplex::net
