// What a rank did and when, over the last steps of a run: computing, waiting, frames, the store's
// work. Ranks send theirs to the coordinator, which writes one trace of all.
#pragma once
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "net/ledger/ledger.h"

namespace duplex::net {

/// Times are nanoseconds, on this rank's clock until in_coordinator_time, then on the
/// coordinator's.
struct TraceEvent {
  enum class Kind : std::uint8_t {
    forward,   ///< `parameter`: the layer's number in the model.
    backward,  ///< Likewise.
    wait,      ///< For the weights of `parameter` for `step`.
    sent,      ///< A frame of weights or gradient; `peer`: its receiver.
    received,  ///< Likewise; `peer`: its sender.
    pushed,    ///< A gradient of this rank's worker was handed to this rank's store.
    add,       ///< The store added the gradient of rank `peer` to the sum.
    update,    ///< The store updated the weights: by all gradients, or by that of rank `peer`.
  };
  Kind kind = Kind::forward;
  FrameKind frame = FrameKind::weights;  ///< Of sent and received.
  std::int32_t peer = -1;
  std::uint32_t parameter = 0, chunk = 0;
  std::uint64_t step = 0;
  std::uint64_t bytes = 0;  ///< Of sent and received, header included.
  std::int64_t queued = 0;  ///< Of sent: when it was handed over.
  std::int64_t from = 0, to = 0;

  /// The step in which it happens: new weights travel in the step whose gradients made them.
  std::uint64_t round() const;
};

/// The frames of weights and gradients of the last `steps` rounds.
std::vector<TraceEvent> trace_of(const std::vector<FrameRecord>& records, std::uint64_t steps);

/// Bytes that a peer may have sent: decode throws ProtocolError where they are none of encode's.
std::string encode(const std::vector<TraceEvent>& events);
std::vector<TraceEvent> decode_trace(const std::string& bytes);

/// The events of the last `steps` rounds and a few more, from any number of threads. Bounded
/// memory, however long the run.
class TraceWindow {
 public:
  explicit TraceWindow(std::uint64_t steps) : steps_(steps) {}

  void add(const TraceEvent& event);
  /// Of the last `steps` rounds.
  std::vector<TraceEvent> events() const;

 private:
  const std::uint64_t steps_;
  mutable std::mutex mutex_;
  std::vector<TraceEvent> events_;
  std::uint64_t newest_ = 0, oldest_ = 0;
};

}  // namespace duplex::net
