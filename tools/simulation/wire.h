// The connections of a simulated run: SendOrder says which frame leaves next, Fluid how fast.
#pragma once
#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "net/connection/queued_semaphore.h"
#include "net/connection/send_order.h"
#include "net/store/step_ranges.h"
#include "tools/simulation/event_queue.h"
#include "tools/simulation/fluid.h"
#include "tools/simulation/processors.h"
#include "tools/simulation/queues.h"
#include "tools/simulation/recorder.h"
#include "tools/simulation/spec.h"

namespace duplex::tools::simulation {

class Wire {
 public:
  /// Calls to the ranks at its ends.
  struct Ends {
    /// A frame of weights or gradient, a `done` or a `lease` has arrived.
    std::function<void(int from, int to, const net::FrameHeader& header)> received;
    /// Returns whether the owner takes a gradient in now. If not, room_made() and turn_came() say
    /// when to ask again.
    std::function<bool(int from, int to, const net::FrameHeader& header)> room;
    /// Weights leave their owner, as they are now.
    std::function<void(int from, int to, const net::FrameHeader& header)> read;
  };

  /// All arguments must outlive it; `recorder` may be null.
  Wire(const Spec& spec, const net::ShardMap& map, EventQueue& event_queue, Processors& processors,
       Recorder* recorder, Ends ends);

  /// Sends weights or a gradient.
  void send(net::FrameKind kind, int from, int to, const net::Chunk& chunk, std::uint64_t step,
            std::uint64_t priority, net::Coding coding);
  /// Tells the owner, behind all gradients, that the worker sends no more.
  void done(int from, int to);
  /// Gives the worker batches of another; an empty lease: there are no more.
  void lease(int from, int to, const net::Lease& lease);
  bool connected(int from, int to) const { return at(from, to) != none; }
  void room_made(int owner);
  /// There is room now for the gradient that this worker has waiting at an owner.
  void turn_came(int owner, int worker);
  void lose(int rank);

  /// Returns when the next frame has left or arrives.
  double next() const;
  /// Handles that frame; next() is now.
  void step();
  void look(std::uint32_t index);  ///< Handles an event: a turn may be over.
  /// Lets all frames go that may, before the next step.
  void flush();
  /// Shares the links anew.
  void share() { fluid_.share(event_queue_.now()); }

  std::uint64_t frames() const { return frames_; }
  std::uint64_t sharings() const { return fluid_.sharings(); }

 private:
  double bytes_of(const net::FrameHeader& header) const;
  double packing(int from, const net::FrameHeader& header) const;
  std::size_t plain_bytes(int from, const net::FrameHeader& header) const;

  using Index = Fluid::Index;  ///< Index of a connection's direction, and of its flow.
  static constexpr Index none = ~Index{0};

  struct Lane {
    int from = -1, to = -1;
    net::SendOrder order;
    std::vector<net::Outgoing> handed;  ///< Handed to the kernel; the first is on its way.
    /// When the first of `handed` began; if it waits `behind` others, when it will.
    double begun = 0.0;
    double look_at = -1.0;  ///< Time of the last event that was put for it.
    enum State { idle, behind, sending, blocked, gone } state = idle;
    bool woken = false;
  };
  struct Delivery {
    double at = 0.0, first = 0.0;
    Index lane = none;
    net::FrameHeader header;
  };
  struct Turns {
    Turns(Wire& wire, int owner);
    net::QueuedSemaphore gradients, weights;  ///< Asked by the workers' ranks.
  };

  Index at(int from, int to) const {
    return lane_at_[static_cast<std::size_t>(from) * static_cast<std::size_t>(ranks_) +
                    static_cast<std::size_t>(to)];
  }
  Turns& turns(int owner) { return *turns_[static_cast<std::size_t>(owner)]; }
  void wake(Index index);
  void pump(Index index);
  void hand_over(Index index, net::Outgoing frame);
  void begin(Index index);
  bool resume(Index index);
  void enter(Index index);
  void start(Index index);
  void pause(Index index);
  void leave(Index index);
  void tell(const Lane& lane, net::SendOrder::TurnRequest what);
  void arrive(const Lane& lane, const net::FrameHeader& header, double first);
  void record(const Lane& lane, const net::FrameHeader& header, bool sent, std::int64_t queued,
              double first) const;

  const Spec& spec_;
  const net::ShardMap& map_;
  const int ranks_;
  EventQueue& event_queue_;
  Processors& processors_;
  Recorder* recorder_;
  Ends ends_;
  Fluid fluid_;
  std::vector<Lane> lanes_;
  std::unique_ptr<Queues> queues_;
  std::vector<Index> lane_at_;  ///< By sender and receiver.
  std::vector<Index> woken_;
  std::vector<std::vector<Index>> blocked_;  ///< By owner.
  std::vector<std::unique_ptr<Turns>> turns_;
  std::deque<Delivery> under_way_;  ///< In the order in which they arrive.
  std::uint64_t frames_ = 0;
};

}  // namespace duplex::tools::simulation
