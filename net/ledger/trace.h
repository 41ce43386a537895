// The trace of a rank over the last steps of a run: when it computed and waited, its frames, and
// the work of its store. Ranks send their traces to the coordinator, which writes one of all.
#pragma once
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "net/ledger/frame_record.h"

namespace duplex::net {

/// Times are nanoseconds, on this rank's clock, or on the coordinator's once a rank has sent its
/// trace there.
struct TraceEvent {
  enum class Kind : std::uint8_t {
    forward,   ///< `parameter`: the layer's number in the model.
    backward,  ///< `parameter`: as for forward.
    wait,      ///< The worker waited for the weights of `parameter` for `step`; or, with a `frame`
               ///< of maps, until some had come.
    sent,      ///< A frame of values was sent to `peer`.
    received,  ///< A frame of values came from `peer`.
    pushed,    ///< A gradient of this rank's worker was handed to this rank's store.
    add,       ///< The store added the gradient of rank `peer` to the sum.
    update,    ///< The store updated the weights by all gradients, or by that of rank `peer`.
  };
  Kind kind = Kind::forward;
  FrameKind frame = FrameKind::weights;  ///< Kind of a sent or received frame.
  std::int32_t peer = -1;
  std::uint32_t parameter = 0, chunk = 0;
  std::uint64_t step = 0;
  std::uint64_t bytes = 0;  ///< Bytes of a sent or received frame, with the header.
  std::int64_t queued = 0;  ///< When a sent frame was handed over.
  std::int64_t from = 0, to = 0;

  /// The round in which the event happens (net/wire/frame.h); the initial weights count to the
  /// first, and a wait for weights to the one that they are for.
  std::uint64_t round() const;
};

/// A frame of values: weights, a gradient, or a map, whose route is `parameter`.
TraceEvent event_of(const FrameRecord& record);

/// Encodes events for a report. decode_trace throws ProtocolError for bytes that encode cannot have
/// made, since a peer may have sent them.
std::string encode(const std::vector<TraceEvent>& events);
std::vector<TraceEvent> decode_trace(const std::string& bytes);

/// Keeps the events of the last `steps` rounds and of the one before, in bounded memory however
/// long the run is: the last weights of an asynchronous run make a round in which nothing is
/// computed. Each of a rank's sources has its own newest round, so tools/tracing cuts what they
/// keep to one window. Any thread may add events.
class TraceWindow {
 public:
  explicit TraceWindow(std::uint64_t steps) : steps_(steps) {}

  void add(const TraceEvent& event);
  /// The events that it keeps.
  std::vector<TraceEvent> events() const;

 private:
  const std::uint64_t steps_;
  mutable std::mutex mutex_;  ///< Guards all below. Any thread takes it, as its only lock.
  std::vector<TraceEvent> events_;
  std::uint64_t newest_ = 0, oldest_ = 0;
};

}  // namespace duplex::net
