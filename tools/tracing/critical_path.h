// The critical path of a wait: the chain of what had to happen before awaited weights could come,
// found in the events of all ranks.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "net/ledger/trace.h"

namespace duplex::tools {

/// A cause for which weights were late.
struct Cause {
  enum Kind {
    computing,  ///< Rank `rank` had not computed its gradient yet.
    queue,      ///< A frame of `rank` stood behind others on their way to rank `to`.
    wire,       ///< A frame was on its way from `rank` to `to`.
    server,     ///< Rank `rank` was adding and updating.
    unknown,    ///< The trace does not reach back that far.
  } kind = unknown;
  int rank = -1, to = -1;

  bool operator<(const Cause& other) const {
    return std::tie(kind, rank, to) < std::tie(other.kind, other.rank, other.to);
  }
  bool operator==(const Cause& other) const { return !(*this < other) && !(other < *this); }
  std::string str() const;  ///< "rank 2 computing".
};

/// Nanoseconds of waiting by cause.
using WaitCauses = std::map<Cause, std::int64_t>;
/// The `parts` greatest causes, as in "wire from rank 1 to rank 0 3.20 ms, rank 2 computing 1.10
/// ms", with each time divided by `steps`.
std::string text_of(const WaitCauses& causes, std::size_t parts, double steps = 1.0);

class CriticalPath {
 public:
  /// The events of all ranks, by rank, on the coordinator's clock; they must outlive it.
  explicit CriticalPath(const std::vector<const std::vector<net::TraceEvent>*>& ranks);

  /// The causes for which rank `rank` waited in `wait`; their times add up to the wait's length.
  ///
  /// The chunk that came last is followed back: its way from the owner, the owner's update, the
  /// gradient that the update lacked longest, the way of that one, and its computing.
  /// Where the rank waited for maps, the message that ended the wait is followed to its sender.
  WaitCauses of(int rank, const net::TraceEvent& wait) const;

 private:
  /// The rank where it happened, kind, kind of frame, parameter, chunk, step.
  using Key = std::tuple<int, net::TraceEvent::Kind, net::FrameKind, std::uint32_t, std::uint32_t,
                         std::uint64_t>;
  using Events = std::vector<const net::TraceEvent*>;
  static Key key(int rank, const net::TraceEvent& event);
  const Events& find(int rank, net::TraceEvent::Kind kind, net::FrameKind frame,
                     std::uint32_t parameter, std::uint32_t chunk, std::uint64_t step) const;
  const net::TraceEvent* sent(int from, int to, const net::TraceEvent& received) const;
  WaitCauses of_maps(int rank, const net::TraceEvent& wait) const;

  std::map<Key, Events> events_;
  std::map<std::uint32_t, std::uint32_t> chunks_;  ///< Chunks of each parameter.
  std::vector<Events> maps_;  ///< By rank: maps and their gradients that came, by when they did.
};

}  // namespace duplex::tools
